#!/usr/bin/env python3
"""Tests the tests: each of these faults, put into the headers one at a time, must be found by detector.cpp.

    faults.py COMPILER SOURCE_DIR SCRATCH_DIR [-k WORD] [--some N] [--seed SEED]

A fault is a text that occurs exactly once in a header and what it becomes. The changed header alone is written to a
scratch folder that the compiler searches before include/. First the headers as they are must be found sound. A fault
that does not compile, or whose text is not there any more, is an error too: then bring it up to date with the header.
Every text is looked for; --some N compiles N of the faults only, drawn by SEED, which is the number of the day unless it is given.
"""
import argparse
import concurrent.futures
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

FAULTS = [
    # name, header, text, becomes
    ("window starts by the bottom padding", "shape/rows.hpp",
     "const Index scaled = out * axis.stride - axis.pad_begin;",
     "const Index scaled = out * axis.stride - axis.pad_end;"),
    ("rows known are one too few", "shape/rows.hpp",
     "wanted - 1) + axis.extent(), 0, height);", "wanted - 1) + axis.extent() - 1, 0, height);"),
    ("carry one row short", "shape/rows.hpp",
     "return std::max<Index>(0, window_begin(axis, next));", "return std::max<Index>(0, window_begin(axis, next) + 1);"),
    ("slabs hold their own rows only", "plan/slab_schedule.hpp",
     "const Range hold{c.first, c.after < c.first ? c.first : c.after}, part{c.before, c.after};",
     "const Range part{c.before, c.after}, hold = part;"),
    ("off-by-one cut", "plan/slab_schedule.hpp",
     "detail::slab_rows(graph, cut, n == 0 ? 0 : s.cuts[static_cast<std::size_t>(n - 1)], s.cuts",
     "detail::slab_rows(graph, cut, n == 0 ? 0 : s.cuts[static_cast<std::size_t>(n - 1)] + 1, s.cuts"),
    ("halo not moved to the tile grid", "plan/slab_schedule.hpp",
     "if (!share && out->first < out->after) out->first = out->first / grid * grid;",
     "if (!share && out->first < out->after) out->first = round_up(out->first, grid);"),
    ("rows that leave overlap at the grid", "plan/slab_schedule.hpp", "if (unread) out->first = out->before;", ""),
    ("sign of a falling rectifier from its output", "plan/needs.hpp",
     "!ends && item(needs.value, t) && keeps_sign(layer(l)) &&", "!ends && item(needs.value, t) &&"),
    ("a shuffle that says it works in place", "layer/channels.hpp",
     ".details = detail::shuffle_text, .fault", ".details = detail::shuffle_text, .overwrites_input = true, .fault"),
    ("output of a custom layer not made again", "plan/needs.hpp",
     "if (n.output) item(needs.value, stage.out(l)) = true;", ""),
    ("statistics of the image before are not begun anew", "plan/emit_forward.hpp",
     "step.accumulate = step.x.rows.begin > 0 || (is_of_batch(node)", "step.accumulate = walk.slab > 0 || (is_of_batch(node)"),
    ("names that come again get no numbers", "network/names.hpp",
     "if (!list[i].name.empty() && seen.contains(list[i].name)) rename(", "if (false) rename("),
    ("names that come again in another part are not looked for", "network/names.hpp", "slots[at].part != part) return true;", "slots[at].part != part) return false;"),
    ("automatic names that are taken", "network/names.hpp", "while (is_taken(name)) name", "while (false) name"),
    ("a bias's gradient in one sum of floats", "backend/host/bias.hpp",
     "const Index block = o.dy.block;", "const Index block = o.dy.block, sum_piece = 1 << 30;"),
    ("a mean in one sum of floats", "shape/rows.hpp", "constexpr Index sum_piece = 256;", "constexpr Index sum_piece = 1 << 30;"),
    ("a cache without bound", "core/bounded_cache.hpp", "if (entries_.size() >= room_) drop_oldest();", ""),
    ("a cache that drops what is in use", "core/bounded_cache.hpp", "if (!InUse{}(entry.value)) idle", "idle"),
    ("a tile evicted while it is read", "data/tile_cache.hpp",
     "return tile.ready && tile.pins == 0;", "return tile.ready;"),
    ("tiles expected soonest evicted first", "data/tile_cache.hpp",
     "a.distance > b.distance : a.used < b.used", "a.distance < b.distance : a.used < b.used"),
    ("a cache that does not see what was read", "data/cached_image.hpp", "image_->cache->passed(*image_, region);", ""),
    ("pixels from the left edge of a tile", "data/cached_image.hpp",
     "(part.rows.begin - rows.begin) * stride + (part.columns.begin - columns.begin) * info().pixel_bytes()",
     "(part.rows.begin - rows.begin) * stride"),
    ("a region's rows from the top of the image", "data/image_batch.hpp",
     "return {{region_.rows.begin + rows.begin, region_.rows.begin + rows.end}, region_.columns};", "return {rows, region_.columns};"),
    ("labels of a window's first image", "layer/labels.hpp",
     "return (((image - held_images_.begin) * channels_ + channel)", "return ((0 * image * channels_ + channel)"),
    ("labels from the top of the map", "layer/labels.hpp",
     "labels.rows()->classes(images.begin + i, rows, part(classes_));", "labels.rows()->classes(images.begin + i, {0, rows.size()}, part(classes_));"),
    ("a loss's total given to another loss", "layer/label_rows.hpp", "known && constant() && *known == loss &&", "known && constant() &&"),
    ("classes counted of labels that change are kept", "layer/label_rows.hpp", "if (constant()) counts_ = ", "counts_ = "),
    ("totals kept of labels that change", "layer/label_rows.hpp", "known && constant() && *known == loss &&", "known && *known == loss &&"),
    ("lost carry", "plan/emit_forward.hpp", "if (carries) carry_in(walk, t, hold);", ""),
    ("state not stored at a common cut", "plan/emit_forward.hpp",
     "*cut <= end; ++cut) {", "*cut < end; ++cut) {"),
    ("gradient carry not added", "plan/emit_backward.hpp", "move(walk, Op::add, in, with_rows(hold, in.rows));", ""),
    ("slab not accumulated", "plan/emit_backward.hpp", "step.accumulate = !is_first(walk, l);", "step.accumulate = false;"),
    ("slab accumulated twice", "plan/emit_backward.hpp",
     "if (packs(walk, l)) step.scratch = storage_.filter_gradient(walk, l);",
     "if (packs(walk, l)) step.scratch = storage_.filter_gradient(walk, l);\n    if (step.accumulate && is_conv(walk.layer(l))) sink_.step(step);"),
    ("stale mask after a re-run", "plan/emit_forward.hpp",
     "(walk.forward() == static_cast<bool>(walk.needs->saved_kept[at]))", "walk.forward()"),
    ("in place over a kept value", "plan/stage_walk.hpp",
     "if (t < inputs() || (serves_backward() && needs->kept[place]) || (!forward() && needs->value[place])) return false;", "if (t < inputs()) return false;"),
    ("gap in the input gradient", "plan/emit_backward.hpp",
     "move(walk, Op::zero, {}, full({0, walk.slab == 0 ? written_from : 0}));", ""),
    ("image slabs share their kept rows", "plan/slab_buffers.hpp",
     "if (walk.image_slab > 0) offset = walk.image_slab * begins(images).back();", ""),
    ("filter packed for the wrong pass", "plan/emit_backward.hpp",
     "packed(walk, Filter::backward, l);", "packed(walk, Filter::recompute, l);"),
    ("state dies within its loop", "plan/storage.hpp",
     "{kept, saved_kept, state_rows, dcarry}", "{kept, saved_kept, dcarry}"),
    ("buffers may meet for one step", "plan/arena.hpp",
     "((p->first >= last || first >= p->last) &&", "((p->first >= last - 1 || first >= p->last - 1) &&"),
    ("every image slab sees the first images", "backend/operands.hpp",
     "all.data += (ref.images.begin - ref.held_images.begin) * all.stride_n;", ""),
    ("labels of the first group", "exec/executor.hpp",
     "backend_->loss(loss, step.x.images.begin, o.x,", "backend_->loss(loss, 0, o.x,"),
    ("activation joins a convolution that something else reads", "plan/emit_forward.hpp", "walk.in_place(l + 1) &&", ""),
    ("rows handed on one off", "plan/emit_forward.hpp",
     "store(walk, with_rows(value(walk, walk.top()), walk.at(walk.top()).own));",
     "store(walk, with_rows(value(walk, walk.top()), {walk.at(walk.top()).own.begin, walk.at(walk.top()).own.end - 1}));"),
    ("rows handed on as the first image's", "exec/executor.hpp",
     "backend_->store(sink, step.x.images.begin, operands_[i].x);", "backend_->store(sink, 0, operands_[i].x);"),
    ("a slab that climbs holds its own rows only", "plan/stream_schedule.hpp",
     "r->hold = {std::min(first_needed(rule->axis, above), before), cut};", "r->hold = {before, cut};"),
    ("global pooling adds to nothing", "plan/emit_forward.hpp", "step.accumulate = step.x.rows.begin > 0;", "step.accumulate = walk.slab > 0;"),
    ("pooled output handed on before its last slab", "plan/emit_forward.hpp",
     "    storage_.outlive_turns(walk, since);\n    if (!stage.reduces) return;", "    if (!stage.reduces) return;"),
    ("statistics taken again", "plan/emit_forward.hpp", "if (walk.again()) return;", ""),
    ("statistics taken again by a pass for sections above", "plan/emit_forward.hpp", "if (walk.again()) return;",
     "if (walk.again() && !walk.for_above()) return;"),
    ("statistics of extra passes taken again by a pass for sections above", "plan/emit_forward.hpp",
     "if (stage.passes > 0 && run == ForwardRun::first) statistics_passes(walk);", "if (stage.passes > 0) statistics_passes(walk);"),
    ("pieces left before the pass for sections above", "plan/emit_forward.hpp",
     "stage.forward_repeated ? ForwardRun::again : stage.supplies ? ForwardRun::for_above : ForwardRun::first;",
     "stage.forward_repeated ? ForwardRun::again : ForwardRun::first;"),
    ("the first of extra passes reads what it is to keep", "plan/emit_backward.hpp",
     "number > 1 && !walk.needs->later_runs.empty()", "!walk.needs->later_runs.empty()"),
    ("the first of extra passes does not write what it is to keep", "plan/stage_pass.hpp",
     "(!needs->kept[place] || stage->passes > 0)", "!needs->kept[place]"),
    ("kept by the first of extra passes, which does not make it", "plan/needs.hpp",
     "runs_of_pass(needs.runs, norms_over(table, stage), 1, false);", "runs_of_pass(needs.runs, norms_over(table, stage), 1, true);"),
    ("a tensor discarded for sections above that others read, too", "plan/stage_graph.hpp",
     "item(last_reader, g) >= end && item(last_reader, g) < group_end;", "item(last_reader, g) >= end;"),
    ("a gradient over values that a pass for sections above reads", "plan/in_place.hpp",
     "if (stage.supplies) return PlaceUse::forbids;", ""),
    ("a norm writes over values that the backward pass reads", "plan/stage_pass.hpp",
     "return use.discarded ? kind.run == ForwardRun::first || !use.made_for_above : item(*all_stages, maker).replaced_by_extra_passes;", "return true;"),
    ("a norm writes over values that other layers read", "plan/stage_graph.hpp",
     "use.read_once = item(readers, item(stage.inputs, t)) == 1;", "use.read_once = true;"),
    ("a norm writes over values that a pass for statistics reads again", "plan/stage_pass.hpp",
     "if (use.readers != 1 || !use.read_once || stage->passes > 0) return false;", "if (use.readers != 1 || !use.read_once) return false;"),
    ("a norm writes over values that a repeated pass makes for the backward pass", "plan/stage_pass.hpp",
     "if (kind.run == ForwardRun::again) return false;", ""),
    ("stale mean in a re-run", "plan/emit_forward.hpp", "if (walk.norm_waits(l)) use_statistics(walk, step, step.layer);",
     "if (walk.norm_waits(l) && walk.forward()) use_statistics(walk, step, step.layer);"),
    ("lost skip gradient", "plan/emit_backward.hpp", "move(walk, Op::add, with_rows(step.dx, rows), with_rows(hold, rows));", ""),
    ("sums of the last slab only", "plan/emit_backward.hpp",
     "step.accumulate = !(first_rows && (!is_of_batch(node) || walk.image_slab == 0));", "step.accumulate = false;"),
    ("a norm's gradient without the other slabs' rows", "plan/emit_backward.hpp",
     "if (full.buffer != dy.buffer) deliver(", "if (full.buffer != dy.buffer && walk.slab == 0) deliver("),
    ("rows that slabs share delivered once", "plan/emit_backward.hpp", "move(walk, Op::add, with_rows(slab, again), full(again));", ""),
    ("a loop does not wait for pieces that others have begun", "backend/host/thread_pool.hpp",
     "left_.load(std::memory_order_acquire) > 0; ++spins", "false; ++spins"),
    ("running variance biased", "backend/host/norm_sums.hpp",
     "set.deviations(c) / (set.count() - 1)", "set.deviations(c) / set.count()"),
    ("statistics merged without the distance of means", "layer/statistics.hpp",
     "own.deviations + other.deviations + d * d * n * share}", "own.deviations + other.deviations}"),
    ("a norm goes backward without the product's share", "layer/statistics.hpp",
     "across = -inverse * inverse * product / count;", "across = 0 * product;"),
    ("residual adds its input twice", "backend/host/join.hpp",
     "sum[p] = sum[p] + more[p];", "sum[p] = sum[p] + sum[p];"),
    ("upsampling one row off", "shape/rows.hpp", ".pad_begin = up - 1, .up = 2 * up}", ".pad_begin = up + 1, .up = 2 * up}"),
    ("second operand's gradient is the first's", "plan/emit_backward.hpp", "step.operand = operand;", ""),
    ("a gradient over rows that are still to be read", "plan/in_place.hpp", 
     "use == PlaceUse::reads ? detail::lag_behind(stage, t) : 0;", "use == PlaceUse::reads ? 1 : 0;"),
    ("a pass for statistics stops below them", "plan/emit_forward.hpp",
     "(makes || (walk.norm_in_round(l) && t == walk.in(l)))) item(wanted, t) = 1;",
     "makes) item(wanted, t) = 1;"),
    ("mask drawn by the slab's row", "backend/host/dropout.hpp",
     "keeps = mask.keeps(o.first_image + i, c, row, quad);", "keeps = mask.keeps(o.first_image + i, c, row - from.row0, quad);"),
    ("mask drawn by the slab's image", "backend/operands.hpp",
     "o.first_image = (step.dx ? step.dx : step.x).images.begin;", ""),
    ("what a join adds to the gradient of an input lost", "plan/emit_backward.hpp",
     "if (given || !walk.cut()) move(walk, Op::add, step.dx, full(step.dx.rows));",
     "if (given || !walk.cut()) { if (walk.slab > 0 || !is_join(walk.layer(l))) move(walk, Op::add, step.dx, full(step.dx.rows)); }"),
    ("factors' gradient of one slab lost", "plan/emit_backward.hpp",
     "else deliver(walk, t, step.dx, full);", "else deliver(walk, t, is_join(walk.layer(l)) ? Ref{} : step.dx, full);"),
    ("factors read from the map's slab", "plan/slab_schedule.hpp",
     "hull(rows[rule.other].need, rule.other_whole ? Range{0, 1} : out);", "hull(rows[rule.other].need, out);"),
    ("pooling added once for each pass", "plan/storage.hpp", "walk.norms_above(t) == 0 && !pooled)", "walk.norms_above(t) == 0)"),
    ("wrong border padding", "shape/rows.hpp",
     "return tap_position(out, tap, axis.stride, axis.pad_begin, axis.dilation);",
     "return tap_position(out, tap, axis.stride, axis.pad_end, axis.dilation);"),
    ("pool's tie goes to the last", "backend/host/pool.hpp", "(v > best[p])", "(v >= best[p])"),
    ("average counts padding always", "backend/host/pool.hpp",
     "extent + axis.pad_end, count_padding);", "extent + axis.pad_end, true);"),
    ("global pooling keeps the last slab", "backend/host/global_pool.hpp",
     "if (sums && o.accumulate) std::copy_n(sums, there, total.begin());", ""),
    ("a factor's gradient of the last slab only", "backend/host/scale.hpp",
     "if (sums && o.accumulate) std::copy_n(sums, there, sum.begin());", ""),
    ("a factor's gradient added by each slab", "plan/emit_backward.hpp",
     "if (step.operand == 1 && step.sums >= 0 && walk.slab > 0 && sink_.every_turn) {", "if (false) {"),
    ("filter gradient written, not added", "backend/host/conv.hpp",
     "if (!o.accumulate) std::fill_n(dw", "std::fill_n(dw"),
    ("pooling backward in windows of one row only", "backend/host/pool.hpp",
     "for (Index r = 0; r < rows.kernel; ++r)\n        if (const Index y", "for (Index r = 0; r < 1; ++r)\n        if (const Index y"),
    ("a head's gradient of one piece of rows", "backend/host/pointwise.hpp", "for (Index piece = 0; piece < pieces; ++piece)", "for (Index piece = 0; piece < 1; ++piece)"),
    ("a transposed convolution's tap with the filters of another", "backend/host/tiled_transpose.hpp",
     ".b = u + (row % s.window.h * s.window.w + column) * s.in * s.out", ".b = u + column * s.in * s.out"),
    ("a transposed convolution's data gradient of its last tap", "backend/host/tiled_transpose.hpp", "        add = true;\n", "        add = tap < 0;\n"),
    ("Winograd's filter not turned round", "backend/host/winograd_formulas.hpp",
     "const float* first = turned ? w + 8 * stride : w;", "const float* first = w; turned = false;"),
    ("Winograd by positions: a chunk's gradients written, not added", "backend/host/winograd.hpp",
     "u + q * apart(p.in_c, channels), begin > 0);", "u + q * apart(p.in_c, channels), false);"),
    ("Winograd by channels: a chunk's gradients written, not added", "backend/host/winograd.hpp",
     "products_of_gradients<K>(p, v, m, count, channels, u, begin > 0);", "products_of_gradients<K>(p, v, m, count, channels, u, false);"),
    ("Winograd by channels: the second thread's last group left out", "backend/host/winograd.hpp",
     "group < groups * (owner + 1) / owners; ++group", "group < groups * (owner + 1) / owners - owner; ++group"),
    ("Winograd by tiles: sums of the second thread left out", "backend/host/winograd.hpp",
     "to[i] += from[i];", "to[i] += 0 * from[i];"),
    ("Winograd by tiles: every group with the first one's filters", "backend/host/winograd.hpp",
     "transform_filters<K>(p, filter, first, channels, threads, u);\n    parallel_for(threads,", "transform_filters<K>(p, filter, 0, channels, threads, u);\n    parallel_for(threads,"),
    ("Winograd's tiles without their border", "backend/host/winograd_formulas.hpp",
     "const bool inside = y >= 0 && x >= 0 && y + patch <= in.rows && x + patch <= in.w;", "const bool inside = y >= 0 && x >= 0 && y < in.rows && x < in.w;"),
    ("AVX2: last columns of a product's panel left out", "backend/host/winograd_formulas.hpp",
     "if constexpr (B > 1) multiply_from<dense, B / 2>(", "if constexpr (B > 2) multiply_from<dense, B / 2>("),
    ("AVX-512: last columns of a product's panel left out", "backend/host/winograd_formulas.hpp",
     "if constexpr (B > 1) multiply_from<dense, B / 2>(", "if constexpr (B > 1 && lanes == 8) multiply_from<dense, B / 2>("),
    ("Winograd's signs of 8 lanes where those of 16 lie", "backend/host/winograd_formulas.hpp",
     "place.x * tile * lanes / 8;", "place.x * tile * 16 / 8;"),
    ("AVX-512: signs turned round", "backend/host/winograd_kernels.hpp",
     "_mm512_setzero_ps(), _CMP_GT_OQ)", "_mm512_setzero_ps(), _CMP_LT_OQ)"),
    ("AVX2: signs turned round", "backend/host/winograd_kernels.hpp",
     "_mm256_setzero_ps(), _CMP_GT_OQ))", "_mm256_setzero_ps(), _CMP_LT_OQ))"),
    ("signs of all lanes in one bit, without vectors", "backend/host/winograd_kernels.hpp",
     "static_cast<unsigned>(truths[l] != 0) << l;", "static_cast<unsigned>(truths[l] != 0);"),
    ("a section's kept bytes are left out", "plan/section_choice.hpp",
     "if (output < 0 || b.last > forward_end_) kept_ += b.bytes;", ""),
    ("inputs that a section keeps are left out", "plan/section_passage.hpp",
     "kept += input.bytes, tensors |= input.above;", "tensors |= input.above;"),
    ("places that nobody offers are taken", "plan/section_passage.hpp",
     "way.reads != 0 && (way.reads & ~entry.offered) == 0", "way.reads != 0"),
    ("what a loop does not read outlives it", "plan/measure.hpp", " && item(buffers, buffer).last > since) stretch", ") stretch"),
    ("gradients from above begin when they are touched", "plan/section_border.hpp",
     "if (readers_.given_from(g, end_)) from_backward_start();", ";"),
    ("points of a frontier are not verified", "plan/frontier_search.hpp", "p.bytes = size.bytes;", "p.bytes = room;"),
    ("a frontier of other costs is taken from a file", "plan/frontier_file.hpp", ", hash64(costs_text(costs)));", ");"),
    ("a budget counts the arena alone", "exec/policy_choice.hpp", "return choice_.budget ? budget_bytes_ - fixed_bytes_ - detail::library_bytes<B>(table, threads_)",
     "return choice_.budget ? budget_bytes_"),
    ("the executor leaves tensors in blocks of all processors", "exec/executor.hpp",
     "plan_.target.vector_block = backend.layout().vector_block;", ";"),
    ("AVX2: the blocks of AVX-512, and the other way round", "core/vectors.hpp",
     "return all ? Vectors::avx512 : Vectors::avx2;", "return all ? Vectors::avx2 : Vectors::avx512;"),
]
# Faults in kernels for vectors that not every processor has: there they cannot be found.
NEEDS = {"AVX2:": ("avx2", "fma"), "AVX-512:": ("avx512f", "avx512bw", "avx512dq", "avx512vl")}


def runs_here(name):
    """Whether this processor has what the fault's kernels need."""
    try:
        flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split()
    except (OSError, TypeError):
        flags = []
    return all(flag in flags for word, needed in NEEDS.items() if name.startswith(word) for flag in needed)


FLAGS = ["-std=c++20", "-O1", "-DNDEBUG", "-w"]


def host_steps(args):
    """The host's loops, compiled once: (arguments for the compiler, the headers that they are made of)."""
    folder = args.scratch / "steps"
    folder.mkdir(parents=True, exist_ok=True)
    source, made = folder / "steps.cpp", folder / "steps.o"
    source.write_text("#define LRCNN_PRECOMPILES_HOST\n#define LRCNN_PRECOMPILES_TRAINING   // run_loop\n"
                      "#define LRCNN_PRECOMPILED\n#include <lrcnn/precompiled/host.hpp>\n")
    include, tests = args.source / "include", args.source / "tests"
    run = subprocess.run([args.compiler, *FLAGS, f"-I{include}", f"-I{tests}", "-MMD", "-MF", str(folder / "headers"), "-c", str(source),
                          "-o", str(made)], capture_output=True, text=True)
    if run.returncode != 0:
        return [], None   # the whole detector will say why
    words = (folder / "headers").read_text().replace("\\\n", " ").split()
    root = (include / "lrcnn").resolve()
    headers = {str(pathlib.Path(w).resolve().relative_to(root)) for w in words if root in pathlib.Path(w).resolve().parents}
    # The loops alone are elsewhere: the detector has planner and checker itself.
    return ["-DLRCNN_PRECOMPILED", "-DLRCNN_PRECOMPILES_TRAINING", "-include", "lrcnn/precompiled/host.hpp", str(made)], headers


def build_and_run(args, number, fault, steps=((), None)):
    """Returns (seconds, exit code, what was printed); the exit code is None if it does not compile."""
    folder = args.scratch / f"fault{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if fault:
        _, header, text, becomes = fault
        source = (args.source / "include/lrcnn" / header).read_text()
        target = folder / "lrcnn" / header
        target.parent.mkdir(parents=True)
        target.write_text(source.replace(text, becomes))
    start = time.monotonic()
    program = folder / "detector"
    arguments, headers = steps
    apart = fault and headers and fault[1] not in headers   # the loops do not know of it: they need not be compiled again
    own, loops = (arguments[:-1], arguments[-1:]) if apart else ([], [])
    tests = args.source / "tests"
    compiled = subprocess.run(
        [args.compiler, *FLAGS, f"-I{folder}", f"-I{args.source / 'include'}", f"-I{tests}", *own, str(tests / "faults/detector.cpp"),
         *loops, "-o", str(program)], capture_output=True, text=True)
    if compiled.returncode != 0:
        return time.monotonic() - start, None, "does not compile: " + compiled.stderr[:500]
    try:
        run = subprocess.run([str(program)], capture_output=True, text=True, errors="replace", timeout=120)
        result = run.returncode, run.stdout
    except subprocess.TimeoutExpired:
        result = -1, "does not end"
    shutil.rmtree(folder, ignore_errors=True)
    return time.monotonic() - start, *result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiler")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("-k", default="", help="only faults whose names contain this")
    parser.add_argument("--some", type=int, default=0, help="how many of them to compile; 0: all")
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86400, help="which ones; today's number unless given")
    args = parser.parse_args()
    stale = [f"{name}: its text occurs {count} times in {header}" for name, header, text, _ in FAULTS
             if (count := (args.source / "include/lrcnn" / header).read_text().count(text)) != 1]
    if stale:
        print(*stale, sep="\n")
        return 1
    with concurrent.futures.ThreadPoolExecutor() as pool:
        sound, loops = pool.submit(build_and_run, args, 0, None), pool.submit(host_steps, args)
        (_, code, text), steps = sound.result(), loops.result()
    if code != 0:
        print("the headers as they are:", text)
        return 1
    print("the headers as they are:", text.strip())
    faults = [f for f in FAULTS if args.k in f[0]]
    for name in [f[0] for f in faults if not runs_here(f[0])]:
        print(f"{name:45} left out: this processor lacks the vectors")
    faults = [f for f in faults if runs_here(f[0])]
    if 0 < args.some < len(faults):
        chosen = set(random.Random(args.seed).sample(range(len(faults)), args.some))
        print(f"{args.some} of {len(faults)} faults, those of --seed {args.seed}; scripts/test --thorough compiles all")
        faults = [f for i, f in enumerate(faults) if i in chosen]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        runs = [pool.submit(build_and_run, args, i + 1, fault, steps) for i, fault in enumerate(faults)]
        for fault, run in zip(faults, runs):
            seconds, code, text = run.result()
            if code is None:
                verdict = "ERROR: " + text
            elif code == 0:
                verdict = "NOT FOUND: " + text.strip()
            else:
                crash = [] if code == 1 else [f"a crash ({code})"]
                verdict = "found by " + ", ".join([line.split(":")[0] for line in text.splitlines()] + crash)
            missed += not verdict.startswith("found")
            print(f"{fault[0]:45} {fault[1]:30} {seconds:5.1f} s  {verdict}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
