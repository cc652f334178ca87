// How many processors and how much memory a process may use, with a folder that stands for /.
#include <lrcnn/core/machine.hpp>
#include <lrcnn/core/memory.hpp>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
using namespace lrcnn;
namespace {
/// A folder with files, while it lives.
class Root {
 public:
  explicit Root(const std::string& cgroup) : path_(std::filesystem::temp_directory_path() / ("lrcnn-machine-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    put("proc/self/cgroup", cgroup);
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  Root& put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
    return *this;
  }
  std::optional<double> quota() const { return processor_quota(path_.string()); }
  int count() const { return processor_count(path_.string()); }
  Index memory() const { return available_memory(path_.string()); }
  Caches caches() const { return find_caches(path_.string()); }

 private:
  std::filesystem::path path_;
};
}   // namespace
TEST_CASE("without limits a process may use what its affinity allows") {
  CHECK(processors_allowed() >= 1);
  CHECK(processor_count("/no/such/folder") == processors_allowed());
  CHECK(processor_count() >= 1);
  CHECK(processor_count() <= processors_allowed());
  CHECK(Root("0::/\n").quota() == std::nullopt);
}
#if defined(__linux__)
TEST_CASE("affinity counts") {
  std::thread([] {   // of this thread only
    cpu_set_t before;
    REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(processors_allowed() == 1);
    CHECK(processor_count() == 1);
  })
      .join();
}
#endif
TEST_CASE("version 2: the least limit of the group and those above it") {
  Root root("0::/a.slice/b.service\n");
  CHECK(root.put("sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n").quota() == std::nullopt);
  CHECK(root.put("sys/fs/cgroup/a.slice/cpu.max", "250000 100000\n").quota() == 2.5);
  CHECK(root.put("sys/fs/cgroup/a.slice/b.service/cpu.max", "400000 100000\n").quota() == 2.5);
  CHECK(root.put("sys/fs/cgroup/cpu.max", "150000 100000\n").quota() == 1.5);
  CHECK(root.count() == std::min(2, processors_allowed()));   // rounded up
  CHECK(root.put("sys/fs/cgroup/a.slice/b.service/cpu.max", "1000 100000\n").quota() == 0.01);
  CHECK(root.count() == 1);
  CHECK(root.put("sys/fs/cgroup/other/cpu.max", "1 100000\n").quota() == 0.01);   // not above the group
}
TEST_CASE("version 1: the group of the controller cpu") {
  Root root("3:cpuset:/\n2:cpu,cpuacct:/docker/x\n1:name=systemd:/y\n");
  CHECK(root.put("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n").put("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n").quota() ==
        std::nullopt);
  CHECK(root.put("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "150000\n").quota() == 1.5);
  CHECK(root.put("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "50000\n")
            .put("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n")
            .quota() == 0.5);
  CHECK(Root("2:cpuacct:/docker/x\n").quota() == std::nullopt);
}
TEST_CASE("the controller cpu may be version 1's beside version 2's tree") {
  Root root("1:cpu:/a\n0::/b\n");
  root.put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000").put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  CHECK(root.quota() == 3.0);
  CHECK(root.put("sys/fs/cgroup/unified/b/cpu.max", "200000 100000").quota() == 2.0);
}
TEST_CASE("what is not understood sets no limit") {
  for (const char* text : {"", "\n", "0", "0::", "0::no/slash\n", "::::\n", ":\n", "1:cpu\n", "x:cpu:y\n"}) {
    Root root(text);
    root.put("sys/fs/cgroup/cpu.max", "100000 100000\n").put("sys/fs/cgroup/no/slash/cpu.max", "100000 100000\n");
    CHECK(root.quota() == std::nullopt);
  }
  for (const char* text :
       {"", "max", "max 100000", "100000", "100000 0", "0 100000", "-1 100000", "100000 -5", "many few", "100000 x", "nan 100000"}) {
    Root root("0::/a\n1:cpu:/a\n");
    CHECK(root.put("sys/fs/cgroup/a/cpu.max", text).quota() == std::nullopt);
    root.put("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
    CHECK(root.put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", text).quota().value_or(1) == 1);
    CHECK(root.count() >= 1);
  }
  Root root("1:cpu:/a\n");
  CHECK(root.put("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000").quota() == std::nullopt);   // no period
  CHECK(Root("0::/a/../..//\n").put("sys/fs/cgroup/cpu.max", "100000 100000").quota() == 1.0);
}
TEST_CASE("memory: the least of what is free and of what the group, and those above it, leave") {
  Root root("0::/job.slice/step.scope\n");
  CHECK(root.memory() == std::numeric_limits<Index>::max());
  root.put("proc/meminfo", "MemTotal: 4000000 kB\nMemFree: 1 kB\nMemAvailable: 1000000 kB\n");
  CHECK(root.memory() == 1'024'000'000);
  const std::string step = "sys/fs/cgroup/job.slice/step.scope/", job = "sys/fs/cgroup/job.slice/";
  root.put(step + "memory.max", "max\n").put(step + "memory.current", "700000000\n");
  CHECK(root.memory() == 1'024'000'000);
  root.put(job + "memory.max", "900000000\n").put(job + "memory.current", "700000000\n");
  CHECK(root.memory() == 200'000'000);
  root.put(job + "memory.stat", "anon 500000000\nfile 200000000\nshmem 50000000\ninactive_file 100000000\nactive_file 50000000\n");
  CHECK(root.memory() == 350'000'000);   // shared memory cannot be given back
  root.put(step + "memory.max", "800000000\n");
  CHECK(root.memory() == 100'000'000);
  root.put(step + "memory.current", "800001000\n");
  CHECK(root.memory() == 0);
}
TEST_CASE("memory: version 1, also where a container shows its own folder as the root") {
  Root root("12:pids:/docker/abc\n7:memory:/docker/abc\n0::/docker/abc\n");
  root.put("proc/meminfo", "MemAvailable: 1000000 kB\n");
  const std::string folder = "sys/fs/cgroup/memory/";
  root.put(folder + "memory.limit_in_bytes", "9223372036854771712\n").put(folder + "memory.usage_in_bytes", "1000\n");
  CHECK(root.memory() == 1'024'000'000);
  root.put(folder + "memory.limit_in_bytes", "600000000\n").put(folder + "memory.usage_in_bytes", "300000000\n");
  root.put(folder + "memory.stat", "cache 9\ninactive_file 7\ntotal_inactive_file 20000000\ntotal_active_file 5000000\n");
  CHECK(root.memory() == 325'000'000);
  CHECK(root.quota() == std::nullopt);
}
TEST_CASE("caches are what the kernel says of the first processor; where it says nothing, what the C library does") {
  const Caches usual = Root("0::/\n").caches();
  CHECK(usual.level2 > 0);
  CHECK(usual.level3 > 0);
  Root root("0::/\n");
  const auto cache = [&](int index, const char* level, const char* size) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    root.put(folder + "/level", level).put(folder + "/size", size);
  };
  cache(0, "1\n", "48K\n");
  cache(2, "2\n", "512K\n");
  cache(3, "3\n", "98304K\n");
  CHECK(root.caches().level2 == 512 * 1024);
  CHECK(root.caches().level3 == 96 * 1024 * 1024);
  cache(2, "2\n", "much\n");
  cache(3, "3\n", "0K\n");
  CHECK(root.caches().level2 == usual.level2);
  CHECK(root.caches().level3 == usual.level3);
}
