//! Takes the place of a file of the crate `oneshot` in builds for ThreadSanitizer, which does not
//! know fences: every operation is ordered by itself, so that none is needed. Orders less than the
//! original does not; what the original orders wrongly it would hide.

pub use core::sync::atomic::Ordering;
use core::sync::atomic::Ordering::SeqCst;

pub struct AtomicU8(core::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub const fn new(value: u8) -> AtomicU8 {
        AtomicU8(core::sync::atomic::AtomicU8::new(value))
    }

    pub fn load(&self, _: Ordering) -> u8 {
        self.0.load(SeqCst)
    }

    pub fn store(&self, value: u8, _: Ordering) {
        self.0.store(value, SeqCst);
    }

    pub fn swap(&self, value: u8, _: Ordering) -> u8 {
        self.0.swap(value, SeqCst)
    }

    pub fn compare_exchange(
        &self,
        current: u8,
        new: u8,
        _: Ordering,
        _: Ordering,
    ) -> Result<u8, u8> {
        self.0.compare_exchange(current, new, SeqCst, SeqCst)
    }

    pub fn fetch_add(&self, value: u8, _: Ordering) -> u8 {
        self.0.fetch_add(value, SeqCst)
    }

    pub fn fetch_xor(&self, value: u8, _: Ordering) -> u8 {
        self.0.fetch_xor(value, SeqCst)
    }
}

pub fn fence(_: Ordering) {}
