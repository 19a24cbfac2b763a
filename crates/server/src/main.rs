//! The binary `highwater`.

use std::ffi::{c_int, c_long};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3.
const PURGE_DELAY: c_int = 15;
const PURGE_DELAY_MS: c_long = 10;
unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

fn main() -> ExitCode {
    keep_no_freed_memory();
    server::cli::main()
}

/// A budget is kept only if what was freed is given back soon: by default that takes a second.
/// The allocator is RocksDB's as well (feature `override`): the C library's keeps what is freed.
fn keep_no_freed_memory() {
    // SAFETY: it sets a number, before there is a second thread.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
}
