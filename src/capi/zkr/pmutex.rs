//! The `pthread_mutex_t` in the recipes' structs. The recipes locked it; here it holds a mark.
//!
//! A program may copy a struct and discard it, so it holds a number instead of a pointer. Copies have the
//! same number. It names the process that initialised the struct, so a child process does not use its
//! parent's objects.

use std::cell::Cell;

use crate::process::Process;

const SIZE: usize = size_of::<libc::pthread_mutex_t>();

/// A valid mutex, as long as nobody makes it a robust one: its tail is of no use to the C library else.
#[repr(C)]
pub(super) struct Pmutex {
    _align: [libc::pthread_mutex_t; 0],
    _head: [u8; SIZE - 16],
    magic: Cell<[u8; 8]>,
    number: Cell<[u8; 8]>,
}

/// Tells a struct that was initialised from other memory.
const MAGIC: [u8; 8] = *b"zkl-lock";

const BITS_BELOW_PROCESS: u32 = 48;

#[cfg(all(target_pointer_width = "64", target_os = "linux"))]
const _: () = assert!(size_of::<Pmutex>() == SIZE && align_of::<Pmutex>() == 8);

impl Pmutex {
    /// Marked by this process.
    pub(super) fn new() -> Pmutex {
        let number = Cell::new(tagged(0).to_ne_bytes());
        Pmutex { _align: [], _head: [0; SIZE - 16], magic: Cell::new(MAGIC), number }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.magic.get() == MAGIC
    }

    pub(super) fn unmark(&self) {
        self.magic.set([0; 8]);
    }

    /// Whether a parent process has marked it.
    pub(super) fn is_inherited(&self) -> bool {
        self.is_marked() && self.number() >> BITS_BELOW_PROCESS != tagged(0) >> BITS_BELOW_PROCESS
    }

    pub(super) fn number(&self) -> u64 {
        u64::from_ne_bytes(self.number.get())
    }

    /// Gives it another number, and returns that, with the process in it.
    pub(super) fn set_number(&self, number: u64) -> u64 {
        self.number.set(tagged(number).to_ne_bytes());
        self.number()
    }
}

fn tagged(number: u64) -> u64 {
    u64::from(Process::this().forks()) << BITS_BELOW_PROCESS | number
}
