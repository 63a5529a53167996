//! Counts the heap allocations of a thread, so that a test can measure the peak memory of one operation.

#![allow(unsafe_code, reason = "a global allocator needs unsafe code")]

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
    // The counters of a thread are gone while it ends.
    let _ended = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        let _ended = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call is passed on unchanged to the system allocator.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller upholds the requirements, which are the same for the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller upholds the requirements, which are the same for the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work` on a runtime of one thread and returns by how many bytes the heap of that thread grew at its peak.
pub(crate) async fn peak_of<F: Future>(work: F) -> (F::Output, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let result = work.await;
    (result, (PEAK.get() - before).max(0).cast_unsigned())
}
