#!/usr/bin/env python3
"""Tests what bench/peers/classify.py does without PyTorch: which files it reads, and its learning rate.  classify.py FOLDER_OF_CLASSIFY_PY"""
import importlib.util
import pathlib
import sys
import tempfile
import types
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() / "classify.py"
for name in ("numpy", "torch", "torchvision"):
    sys.modules[name] = types.ModuleType(name)   # in place of what the machine may lack
spec = importlib.util.spec_from_file_location("peer", PROGRAM)
peer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peer)


class Classify(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def has(self, *names):
        for name in names:
            (self.folder / name).touch()

    def files(self, part):
        return [path.name for path in peer.files_of(self.folder, part)]

    def refuses(self, part, text):
        with self.assertRaises(SystemExit) as said:
            peer.files_of(self.folder, part)
        self.assertEqual(said.exception.code, f"error: {text}".format(self.folder))

    def test_published_files(self):
        self.has(*(f"data_batch_{number}.bin" for number in (3, 1, 5, 4)), "data_batch_2.bin.gz", "test_batch.bin", "batches.meta.txt")
        self.assertEqual(self.files("train"), ["data_batch_1.bin", "data_batch_2.bin.gz", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"])
        self.assertEqual(self.files("test"), ["test_batch.bin"])

    def test_one_file_comes_first(self):
        self.has("train.bin.gz", "data_batch_1.bin", "test.bin", "test.bin.gz", "test_batch.bin")
        self.assertEqual((self.files("train"), self.files("test")), (["train.bin.gz"], ["test.bin"]))

    def test_the_first_of_the_published_files(self):
        self.has("data_batch_1.bin", "data_batch_2.bin")
        self.assertEqual(self.files("train"), ["data_batch_1.bin", "data_batch_2.bin"])

    def test_what_is_missing(self):
        rule = "in {}, plain or with .gz; it holds CIFAR-10's binary files; give their folder"
        self.refuses("train", f"no train.bin and no data_batch_1.bin {rule}")
        self.refuses("test", f"no test.bin and no test_batch.bin {rule}")
        self.has("data_batch_1.bin", "data_batch_4.bin")
        self.refuses("train", "data_batch_2.bin is missing in {}; parts of CIFAR-10 have no gaps; fetch it")

    def test_the_rate_rises_for_an_epoch_and_falls_to_nothing(self):
        for batches, epochs in ((4, 3), (1, 2), (1, 1), (31, 1), (31, 5)):
            rates = [peer.rate(step, batches, batches * epochs) for step in range(batches * epochs + 1)]   # PyTorch asks for one more
            self.assertEqual(rates[:batches], [(step + 1) / batches for step in range(batches)])
            self.assertEqual(rates[batches], 1)
            self.assertEqual(rates[batches:], sorted(rates[batches:], reverse=True))
            if epochs > 1:
                self.assertAlmostEqual(rates[-1], 0)


unittest.main()
