//! Counts the heap of a thread, so that a test can say how much memory something took at most, whatever others do.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

pub(crate) struct CountingHeap;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that is ending has no counters any more.
    let _ended = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ended = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promise is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Waits for `work`, on a runtime of one thread, and tells by how many bytes that thread's heap grew at most.
pub(crate) async fn peak_of<F: Future>(work: F) -> (F::Output, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work.await;
    (result, (PEAK.get() - before).max(0).cast_unsigned())
}
