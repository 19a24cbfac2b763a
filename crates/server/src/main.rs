//! The binary `highwater`.

use std::ffi::{c_int, c_long};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3.
const PURGE_DELAY: c_int = 15;
const PURGE_DELAY_MS: c_long = 10;
/// RocksDB's memory comes from the C library: blocks from this size on are given back when freed.
const MAPPED_BYTES: c_int = 256 << 10;
/// Arenas of the C library; each keeps what was freed in it for itself.
const ARENAS: c_int = 2;

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

fn main() -> ExitCode {
    keep_no_freed_memory();
    server::cli::main()
}

/// A budget is kept only if what was freed is given back. By default mimalloc waits for a second and
/// the C library for ever, with one arena per thread: measured, a third more than was in use.
fn keep_no_freed_memory() {
    // SAFETY: both only set numbers, before there is a second thread.
    unsafe {
        mi_option_set(PURGE_DELAY, PURGE_DELAY_MS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}
