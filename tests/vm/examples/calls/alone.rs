// SPDX-License-Identifier: GPL-2.0-only
//! Doors that want a process of their own: seccomp filters stay until it ends, and rseq(2) is
//! measured without before with, in a process for which glibc has not registered an area.

use std::arch::asm;
use std::io::Error;

use libc::{sock_filter, timespec};

use crate::doors::{UNDEFINED_BYTES, handle_exceptions, undefined, until_handled};
use crate::figures::{measure, row};

/// What `print` knows.
pub const ALL: [&str; 3] = ["seccomp-loads", "seccomp-divisions", "rseq"];

pub fn print(what: &str, times: usize) {
    match what {
        // a word of the first argument: the kernel does not remember what a filter that reads
        // arguments has said
        "seccomp-loads" => seccomp(times, "loads", LOAD),
        // of the instructions of classic BPF, the one of most instructions of the CPU
        "seccomp-divisions" => {
            seccomp(times, "divisions", bpf(libc::BPF_ALU | libc::BPF_DIV | libc::BPF_K, 3));
        }
        "rseq" => rseq(times),
        _ => panic!("what is '{what}'? {ALL:?}"),
    }
}

const fn bpf(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}
/// The lower half of seccomp_data.args[0].
const LOAD: sock_filter = bpf(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16);
const ALLOW: sock_filter = bpf(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);

/// False: the filters would be too long in all.
fn add_filter(mut program: Vec<sock_filter>) -> bool {
    let len = program.len().try_into().expect("a length");
    let program = libc::sock_fprog { len, filter: program.as_mut_ptr() };
    let (set, flags) = (libc::SECCOMP_SET_MODE_FILTER, 0);
    // SAFETY: a valid program, which the kernel copies.
    let added = unsafe { libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) } == 0;
    let error = Error::last_os_error();
    let full = !added && error.raw_os_error() == Some(libc::ENOMEM);
    assert!(added || full, "seccomp: {error}; does this kernel have CONFIG_SECCOMP_FILTER?");
    added
}

/// A harmless call with no filter, with one of which the kernel remembers the answer, and with as many
/// of `instruction` as it takes.
fn seccomp(times: usize, what: &str, instruction: sock_filter) {
    const LONGEST: usize = 4096; // BPF_MAXINSNS
    let path = "/proc/sys/net/core/bpf_jit_enable";
    let jit = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // SAFETY: plain integers; without it, filters want CAP_SYS_ADMIN.
    let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(set, 0, "PR_SET_NO_NEW_PRIVS: {}", Error::last_os_error());
    let nothing = measure(times, libc::CLOCK_MONOTONIC, || ());
    let getppid = || {
        let call = || {
            // SAFETY: takes nothing, writes nothing.
            unsafe { libc::syscall(libc::SYS_getppid) };
        };
        measure(times, libc::CLOCK_MONOTONIC, call)
    };
    row("seccomp", "getppid, no filter", &nothing, &getppid());
    assert!(add_filter(vec![ALLOW]), "there is room for one filter");
    row("seccomp", "getppid, 1 remembered", &nothing, &getppid());
    let (mut filters, mut sum, mut length) = (0, 0, LONGEST);
    while length > 2 {
        let mut program = vec![instruction; length];
        (program[0], program[length - 1]) = (LOAD, ALLOW);
        if add_filter(program) {
            filters += 1;
            sum += length;
        } else {
            length /= 2;
        }
    }
    assert!(sum > LONGEST, "{sum} instructions: these are not the longest filters");
    row("seccomp", &format!("getppid, {sum} {what}"), &nothing, &getppid());
    println!("seccomp: {filters} filters, bpf_jit_enable {}", jit.trim());
}

/// As the kernel's struct rseq was at first, a size that it has accepted ever since.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    rseq_cs: u64,
    rest: [u32; 4],
}

/// What a sleep and a signal take without an area, with one, and in a critical section, which the
/// signal aborts.
fn rseq(times: usize) {
    const SIGNATURE: u32 = 0x5305_3053;
    const UNINITIALIZED: u32 = u32::MAX;
    handle_exceptions();
    // SAFETY: plain integers; timers then expire when they are asked to.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let nothing = measure(times, libc::CLOCK_MONOTONIC, || ());
    let nothing_own = measure(times, libc::CLOCK_THREAD_CPUTIME_ID, || ());
    let both = |with: &str| {
        let ns1 = timespec { tv_sec: 0, tv_nsec: 1 };
        let sleep = || {
            // SAFETY: a valid timespec.
            unsafe { libc::syscall(libc::SYS_nanosleep, &raw const ns1, 0) };
        };
        let slept = measure(times, libc::CLOCK_THREAD_CPUTIME_ID, sleep);
        row("rseq", &format!("nanosleep 1 ns, {with}"), &nothing_own, &slept);
        let handled = until_handled(times, UNDEFINED_BYTES, undefined);
        row("rseq", &format!("#UD, ud2, {with}"), &nothing, &handled);
    };

    both("no area");
    let area = Area { cpu_id_start: 0, cpu_id: UNINITIALIZED, rseq_cs: 0, rest: [0; 4] };
    let area = std::ptr::from_mut(Box::leak(Box::new(area)));
    // SAFETY: the area lives as long as the process, and the kernel alone writes to it.
    let registered =
        unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), 0, SIGNATURE) };
    let error = Error::last_os_error();
    assert_eq!(registered, 0, "rseq: {error}; does GLIBC_TUNABLES have glibc.pthread.rseq=0?");
    both("area");
    // SAFETY: as above.
    let cpu = unsafe { (&raw const (*area).cpu_id).read_volatile() };
    assert_ne!(cpu, UNINITIALIZED, "the kernel does not write to the area");

    let section = || {
        // SAFETY: the area's descriptor says that the section is the one instruction, at which a
        // signal arrives: the kernel leads its handler back to the end. As rseq(2) wants it, the
        // signature is before.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw\"",
                ".balign 32",
                "3: .long 0, 0", // version, flags
                ".quad 4f, 5f - 4f, 6f",
                ".popsection",
                "lea {at}, [rip + 3b]",
                "mov [{area} + 8], {at}", // rseq_cs
                "4: ud2",
                "5: jmp 6f",
                ".byte 0x0f, 0xb9, 0x3d",
                ".long {signature}",
                "6:",
                area = in(reg) area,
                at = out(reg) _,
                signature = const SIGNATURE,
            );
        }
    };
    row("rseq", "#UD, ud2, critical section", &nothing, &until_handled(times, 0, section));
    // SAFETY: as above.
    let left = unsafe { (&raw const (*area).rseq_cs).read_volatile() };
    assert_eq!(left, 0, "the kernel has not aborted the critical section");
}
