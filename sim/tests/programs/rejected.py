# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Programs and arguments that rdma-sim rejects, and its limits."""

import pathlib
import re
import shutil
import subprocess

from fixture import SERVER, test

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]  # sim/

MAKE_MANY = """
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void) {
    struct rlimit limit = {1, 1};
    struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
    if (prlimit(getppid(), RLIMIT_AS, &limit, NULL)) return 1;
    while (ibv_alloc_pd(context));
    return 0;
}
"""


@test("rdma-sim ends with one line and its own status if no memory is left", "cc")
def no_memory(fixture):
    source, program = fixture.work / "many.c", fixture.work / "many"
    source.write_text(MAKE_MANY, encoding="utf-8")
    fixture.run("cc", source, "-D_GNU_SOURCE", "-o", program, "-libverbs")
    fixture.expect(fixture.sim(program), 125, r"\Ardma-sim: no memory is left\n\Z")


@test("connections of programs with a limit of 1024 files", "cc")
def file_limit(fixture):
    program = fixture.work / "connect"
    fixture.run("cc", HERE.parent / "cli" / "connect.c", "-o", program, "-lrdmacm", "-libverbs")
    script = f"ulimit -Sn 1024; exec {fixture.program} {program} serve 200 :: {program} open {SERVER} 200"
    fixture.program = "sh"  # rdma-sim needs a descriptor for each channel of both programs
    fixture.expect(fixture.sim("-c", script), 0)
    fixture.expect(fixture.sim("-c", f"ulimit -n 80; exec {script.split('exec ')[1]}"), (1, 2),
                   "^rdma-sim: rdma-sim itself may open 80 files.*ulimit -Hn")


@test("a program is linked on the fabric", "cc")
def links(fixture):
    """The linker combines librdmacm.so.1 of the fabric with libibverbs.so of the system."""
    source, program, library = (fixture.work / name for name in ("program.c", "program", "libuser.so"))
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    fixture.run("cc", "-shared", "-o", library, "-Wl,--no-as-needed", "-lrdmacm")
    done = fixture.sim("cc", source, "-o", program, f"-L{fixture.work}", "-Wl,--no-as-needed", "-luser", "-libverbs")
    fixture.expect(done, 0)
    assert program.exists()


# ---- programs that cannot run ----------------------------------------------------------------


def build_outside(fixture):
    """Programs into which the linker does not load the fabric's libraries, and the problems that rdma-sim names."""
    source, names = fixture.work / "program.c", ["static", "setuid", "other-machine", "other-class", "other-libc"]
    source.write_text('#include <stdio.h>\nint main(void) { return puts("runs") < 0; }\n', encoding="utf-8")
    static, setuid, machine, bits, libc = programs = [fixture.work / name for name in names]
    for program, options in zip(programs, (["-static"], [], [], [], ["-Wl,--dynamic-linker=/lib/ld-other.so.1"])):
        fixture.run("cc", source, "-o", program, *options)
    for program, offset, value in ((machine, 18, (0xF3 if machine.read_bytes()[18] != 0xF3 else 0x3E, 0)),  # RISC-V
                                   (bits, 4, (1,))):  # ELFCLASS32
        image = bytearray(program.read_bytes())
        image[offset:offset + len(value)] = value
        program.write_bytes(image)
    setuid.chmod(0o4755)
    return [(static, "linked statically.*link it dynamically"), (setuid, "setuid.*run a copy without"),
            (machine, "built for another architecture"), (bits, "built for another architecture"),
            (libc, "built for another C library")]


@test("a program that cannot run is rejected in one line", "cc")
def refused(fixture):
    source = fixture.work / "program.c"
    links = ["-Wl,--no-as-needed", "-l:libibverbs.so.1"]
    outside = build_outside(fixture)

    def build(name, *options):
        program = fixture.work / name
        fixture.run("cc", source, "-o", program, *options)
        return program

    other = fixture.work / "other"
    other.mkdir()
    (other / "libibverbs.so.1").symlink_to(fixture.path_of("libibverbs.so.1"))
    not_executable = build("not-executable")
    not_executable.chmod(0o644)
    text = fixture.work / "text"
    text.write_text("nothing\n", encoding="utf-8")
    text.chmod(0o755)
    for program, pattern in [
            *outside,
            (not_executable, "not executable: use chmod"),
            (build("rpath", "-Wl,--disable-new-dtags", f"-Wl,-rpath,{other}", *links),
             "loads another libibverbs.so.1 .*RPATH"),
            (text, "neither a program nor a script"),
            (fixture.work / "missing", "No such file"),
            (fixture.work / "new\nline", r"/new\\x0aline: No such file"),
            ("no-such-program", "not found in PATH"),
            (fixture.work, "not a file that can be executed")]:
        done = fixture.sim("touch", fixture.work / "started", "::", program)
        fixture.expect(done, 2, f"^rdma-sim: .*{pattern}.*\n$")
        assert not (fixture.work / "started").exists()
    preloaded = fixture.sim("ibv_devices", environment={"LD_PRELOAD": fixture.path_of("libibverbs.so.1")})
    fixture.expect(preloaded, 2, "^rdma-sim: .*loads another libibverbs.so.1 .*LD_PRELOAD.*\n$")


@test("a program of a wrapper that is not on the fabric ends with one line", "ibv_devices", "rping",
      "/usr/bin/python3")
def wrapped(fixture):
    other = pathlib.Path(fixture.path_of("libibverbs.so.1")).parent
    devices = ("import ctypes; n = ctypes.c_int(); "
               "ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(ctypes.byref(n)); print(n)")
    for script, pattern in [
            (f"LD_LIBRARY_PATH={other} exec rping -s -a {SERVER} -C 1", "rping: loads another libibverbs.so.1 .*begin with /"),
            (f"LD_LIBRARY_PATH={other}:$LD_LIBRARY_PATH ibv_devices", "ibv_devices: loads another libibverbs.so.1 "),
            ("unset LD_LIBRARY_PATH; env ibv_devices", "ibv_devices: loads another libibverbs.so.1 "),
            (f"LD_PRELOAD={other}/libm.so.6 ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            ("unset LD_PRELOAD; ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            ("env -u LD_PRELOAD -u LD_LIBRARY_PATH ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            (f"env -i {shutil.which('ibv_devices')}", "/\\S+ibv_devices: librdma-sim-preload.so is not loaded"),
            ("env -i nice sh -c 'setsid -w ibv_devices'", "ibv_devices: librdma-sim-preload.so is not loaded")]:
        # The run ends, whatever becomes of the program's status and output.
        done = fixture.sim("sh", "-c", f"({script}) >/dev/null 2>&1; exit 0")
        fixture.expect(done, 125, rf"\Ardma-sim: {pattern}.*\n\Z")
    for script in ("LD_LIBRARY_PATH=/no/such/directory:$LD_LIBRARY_PATH ibv_devices",
                   f"LD_LIBRARY_PATH={other} exec /usr/bin/python3 -c \"{devices}\""):
        fixture.expect(fixture.sim("sh", "-c", script), 0, r"rxe0|c_int\(1\)")


# Programs that execute PROGRAM: each by another function of the C library. Their status and output are lost.
EXECUTE = """
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>
extern char **environ;
int main(int argc, char *argv[]) {
    char *const none[] = {NULL}, *const name = argv[2], *const list[] = {name, NULL};
    pid_t pid;
    wordexp_t words;
    char command[4096];
    snprintf(command, sizeof(command), "$(%s)", name);
    if (argc != 3) return 1;
    #define CASE(function, call) if (!strcmp(argv[1], #function)) return (int)(call);
    CASE(execl, execl(name, name, "x", NULL))
    CASE(execle, execle(name, name, NULL, none))
    CASE(execlp, execlp(name, name, "x", "y", NULL))
    CASE(execv, execv(name, list))
    CASE(execve, execve(name, list, none))
    CASE(execveat, execveat(AT_FDCWD, name, list, none, 0))
    CASE(execvp, execvp(name, list))
    CASE(execvpe, execvpe(name, list, none))
    CASE(fexecve, fexecve(open(name, O_PATH), list, none))
    CASE(popen, getc(popen(name, "r")))
    CASE(posix_spawn, posix_spawn(&pid, name, NULL, NULL, list, none))
    CASE(posix_spawnp, posix_spawnp(&pid, name, NULL, NULL, list, environ))
    CASE(system, system(name))
    CASE(wordexp, wordexp(command, &words, 0))
    return 2;
}
"""
# Of the same form, but they execute no file of this machine.
OTHERS = r"posix_spawn(_file_actions|attr)_.*|re_exec|regexec|rexec(_af)?|svcerr_systemerr|__libc_system|_IO_popen"


@test("a program outside the fabric ends the run with one line, whatever executes it", "cc")
def executed(fixture):
    outside = build_outside(fixture)
    static = outside[0][0]
    source, program = fixture.work / "execute.c", fixture.work / "execute"
    source.write_text(EXECUTE, encoding="utf-8")
    fixture.run("cc", "-D_GNU_SOURCE", source, "-o", program)
    symbols = fixture.run("nm", "--dynamic", "--defined-only", fixture.path_of("libc.so.6"))
    functions = set(re.findall(r"^\S+ [TW] (\w*(?:exec|spawn|popen|system)\w*|wordexp)@", symbols, re.M))
    functions = sorted(each for each in functions if not re.fullmatch(OTHERS, each))
    assert functions == re.findall(r"^    CASE\((\w+), ", EXECUTE, re.M), functions
    script = fixture.work / "script"
    script.write_text(f"#!{static} option\n", encoding="utf-8")
    script.chmod(0o755)
    for command, path, problem in [
            *[((program, function, static), static, outside[0][1]) for function in functions],
            *[(("sh", "-c", f"{path} >/dev/null 2>&1; exit 0"), path, problem) for path, problem in outside],
            *[((*wrapper.split(), static), static, outside[0][1]) for wrapper in
              ("nice", "timeout 9", "setsid -w", "stdbuf -o0", "env -i", "nohup", "xargs -a /etc/hostname")],
            (("script", "-qc", static, "/dev/null"), static, outside[0][1]),
            (("sh", "-c", str(script)), static, outside[0][1]),
            (("sh", "-c", f"PATH={fixture.work} static"), static, outside[0][1])]:
        done = fixture.sim(*command)
        fixture.expect(done, 125, rf"\Ardma-sim: \S*{re.escape(str(path))}, which \S+ executes: .*{problem}.*\n\Z")
    done = fixture.sim("--prefix", "sh", "-c", f"printf 'two\nlines'; {static}; echo more")
    fixture.expect(done, 125, r"\Ahost1: two\nhost1: lines\nrdma-sim: .*\n\Z")
    done = fixture.sim("explore", "--seeds", "1-2", "--check", "true", "sh", "-c", f"exec {static}")
    fixture.expect(done, 125, r"\Ardma-sim: .*linked statically.*\n\Z")


@test("helpers that are linked statically run", "ibv_devices", "/usr/bin/python3")
def helpers(fixture):
    """The dynamic linker, ldconfig and valgrind's tools."""
    linker = re.search(r"interpreter: (\S+)\]", fixture.run("readelf", "-lW", shutil.which("ibv_devices"))).group(1)
    find = "import ctypes.util; print(ctypes.util.find_library('ibverbs'))"
    for words, pattern in [((linker, shutil.which("ibv_devices")), "rxe0"),
                           (("/usr/bin/python3", "-c", find), "libibverbs.so.1"),
                           (("env", "-i", "sh", "-c", "uname"), "Linux"),
                           *[(("valgrind", "-q", "ibv_devices"), "rxe0")] * bool(shutil.which("valgrind"))]:
        fixture.expect(fixture.sim("sh", "-c", 'exec "$@"', "sh", *words), 0, pattern)
    fixture.expect(fixture.sim(linker, shutil.which("ibv_devices")), 0, "rxe0")
    done = fixture.sim("explore", "--seeds", "1-2", "--check", "true", "sh", "-c", "exec ibv_devices")
    fixture.expect(done, 0, "nothing found")


@test("direct verbs are refused in one line", "cc")
def direct_verbs(fixture):
    source = fixture.work / "direct.c"
    source.write_text("#include <infiniband/mlx5dv.h>\n#include <stdio.h>\nint main(void) {\n"
                      "struct ibv_device **list = ibv_get_device_list(NULL);\n"
                      "struct mlx5dv_context_attr attr = {0};\n"
                      "printf(\"%d\\n\", mlx5dv_is_supported(list[0]));\n"
                      "return mlx5dv_open_device(list[0], &attr) != NULL; }\n", encoding="utf-8")
    program = fixture.work / "direct"
    fixture.run("cc", source, "-o", program, "-lmlx5", "-libverbs")
    fixture.expect(fixture.sim("--device", "mlx5", program), 0, "^0$",
                   "rdma-sim: direct: mlx5dv_open_device: direct verbs are not supported: see Limits in")


NULL_PATH = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for call in ("statx(0, None, 0, 0, None)", "open(None, 0)", "openat(0, None, 0)", "access(None, 0)", "stat(None, None)",
             "lstat(None, None)", "chdir(None)", "readlink(None, None, 1)"):
    eval("libc." + call)
    assert ctypes.get_errno() == errno.EFAULT, (call, ctypes.get_errno())
"""


@test("a path may be NULL", "/usr/bin/python3")
def null_path(fixture):
    """Rust tests by such a call whether the kernel has statx()."""
    fixture.expect(fixture.sim("/usr/bin/python3", "-c", NULL_PATH), 0)


@test("wrong arguments are refused in one line")
def arguments(fixture):
    for line, pattern in [
            ("--hosts 0 true", "--hosts takes a number from 1 to 254, not '0'"),
            ("--hosts 1 true :: true", "there is no host2, only 1 hosts"),
            ("--device mlx6 true", "there is no device 'mlx6'"),
            ("--device host3=rxe true", "there is no host3"),
            ("--platform cpu true", "--platform takes direct-write, cpu-flush or flush-only, not 'cpu'"),
            ("--until host0 true", "--until takes a host"),
            ("--join no-such-fabric true", "no fabric 'no-such-fabric' runs"),
            ("--pmem /no/such/file true", "--pmem /no/such/file: No such file"),
            ("true ::", "a COMMAND is missing"),
            ("@host0 true", "@ takes a host"),
            ("--hosts 255 true", "--hosts takes a number from 1 to 254"),
            ("--hosts 2x true", "--hosts takes a number from 1 to 254"),
            ("--seed -1 true", "--seed takes a number from 0 to 18446744073709551615"),
            ("--lose some true", "--lose takes all or random, not 'some'"),
            ("--memory shared true", "--memory takes direct or thread, not 'shared'"),
            ("--name a/b", "--name takes a name of at most 40 characters without '/'"),
            (f"--name {41 * 'a'}", "--name takes a name of at most 40 characters"),
            ("--host host0 true", "--host takes a host"),
            ("--pmem host2=/no/such/file true", "--pmem: there is no host2"),
            ("--until host2 true", "--until: there is no host2"),
            ("--hosts 2 --until host2 true", "--until: host2 has no COMMAND that could end"),
            ("--name lab --until host1", "--until: host1 has no COMMAND that could end"),
            ("--hosts 1 @host2 true", "@HOST: there is no host2"),
            ("--join fabric true :: true", "--join takes one COMMAND"),
            ("--join= true", "--join '' is for programs that run on a fabric already"),
            ("--check true true", "--check is for rdma-sim explore"),
            ("", "a COMMAND is missing")]:
        fixture.expect(fixture.sim(*line.split()), 2, f"^rdma-sim: .*{re.escape(pattern)}.*\n$")
    for fault, pattern in [
            ("cut host1", "it begins with a time"), ("2s", "the action is missing"),
            ("2s melt host1", "there is no action 'melt'"), ("2s cut", "a host is missing"),
            ("2s delay host1", "a time is missing"), ("2s refuse host1 x", "there is no error 'x'"),
            ("2s event host1 party", "there is no event 'party'"),
            ("2s kill host1 host1", "unexpected 'host1'"), ("after cut host1", "followed by a host"),
            ("2s kill host7", "there is no host7"), ("after host7 kill host1", "there is no host7"),
            ("2x kill host1", "it begins with a time"), ("-1s kill host1", "it begins with a time"),
            ("1000000000s kill host1", "it begins with a time"), ("at 2s", "the action is missing"),
            ("after host1", "the action is missing"), ("2s cut host0", "there is no host 'host0'"),
            ("2s delay host1 0s", "a time is missing"), ("2s refuse host1 0", "a count is missing"),
            ("2s refuse host1 4294967296", "a count is missing"), ("2s refuse host1 3x", "a count is missing"),
            ("2s refuse host1 3 EFAIL", "there is no error 'EFAIL'"),
            ("2s doorbell host1 3", "there is no error '3'"), ("2s doorbell host1 EIO EIO", "unexpected 'EIO'"),
            ("host2:ibv_post_send:3 kill", "there is no host2"), ("host1:ibv_fly kill", "there is no call 'ibv_fly'"),
            ("host1:ibv_post_send:x kill", "the number of the call is missing"),
            ("1s fail host1 ibv_poll_cq", "there is no call 'ibv_poll_cq'"),
            ("1s cut-one-way host1", "two hosts are missing"), ("1s overrun host1 for 1s", "overrun does not last"),
            ("2s event host1 qp-fatal", "the device rxe of host1 cannot have this fault: use one of mlx5, "),
            ("2s event host1 sm-change", "cannot have this fault, nor can another one")]:
        fixture.expect(fixture.sim("--fault", fault, "true"), 2, f"^rdma-sim: --fault.*{re.escape(pattern)}.*\n$")
    iwarp = "irdma-iwarp cxgb4 erdma qedr-iwarp siw"
    for action, devices in [("overrun", "mana qedr-iwarp"), ("remove", "cxgb4 qedr qedr-iwarp siw"),
                            ("insert", "cxgb4 qedr qedr-iwarp siw"), ("drop-datagram", f"{iwarp} erdma-roce mana qedr"),
                            ("repeat-datagram", f"{iwarp} erdma-roce mana qedr"), ("drop-cm", iwarp),
                            ("event qp-req-err", "erdma erdma-roce mana qedr-iwarp rxe")]:
        for device in devices.split():
            fixture.expect(fixture.sim("--device", device, "--fault", f"host1:ibv_post_send {action}", "true"), 2,
                           rf"\A.*: the device {device} of host1 cannot have this fault: use one of .*\n\Z")
    for device in re.findall(r"^\S+", fixture.sim("--device", "help").stdout, re.M):
        done = fixture.sim("--device", f"host2={device}", "--fault", "0s doorbell host2", "true", "::", "true")
        if device in ("rxe", "siw"):
            fixture.expect(done, 0)
        else:
            fixture.expect(done, 2, f"the device {device} of host2 cannot have this fault: use one of rxe, siw\n")


@test("help that cannot be written")
def full_output(fixture):
    for options in ["--help", "--version", "--device help", "--fault help"]:
        done = subprocess.run(f"exec {fixture.program} {options} >/dev/full", shell=True, text=True,
                              stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (1, "rdma-sim: standard output: No space left on device\n"), done


@test("--help, the page and the completion have the same options and faults; other help")
def texts(fixture):
    page, explore = ((ROOT / "man" / f"{name}.1").read_text(encoding="utf-8") for name in ("rdma-sim", "rdma-sim-explore"))
    completion = (ROOT / "cli" / "completion").read_text(encoding="utf-8")
    usage = fixture.sim("--help").stdout
    options = set(re.findall(r"^ .*?--([a-z-]+)", usage, re.M))
    assert len(options) > 15 and options == set(
        re.findall(r"^\.It .*?Fl Fl ([a-z-]+)", page + explore, re.M)), options
    assert options == set(re.findall(r" --([a-z-]+)\b", completion.split("compgen -W '-n", 1)[1])), options
    fixture.expect(fixture.sim("--version"), 0, r"\Ardma-sim \d+\.\d+\.\d+\n\Z")
    fixture.expect(fixture.sim("--device", "help"), 0, "^rxe +RoCE$", "^siw +iWARP$", "^mlx5-ib +InfiniBand$")
    faults = set(re.findall(r"^  ([a-z-]+) ", fixture.sim("--fault", "help").stdout, re.M))
    assert faults == set(re.findall(r"\.It Cm ([a-z-]+)\b", page[page.index(".Ss Faults"):page.index(".Ss Weaknesses")])), faults
