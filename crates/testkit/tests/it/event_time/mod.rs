//! Event time end to end: what is late depends on the data alone, and where it cannot (files that
//! appear later, splits that fall silent), on what is in the split log.

mod feed;
mod splits;
mod ways;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}
