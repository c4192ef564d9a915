//! The C library has no C client in it.
//!
//! A program gives us handles that it made, and a handle works only with the functions of the copy
//! that made it. So `libzklock.so` and `libzklock.a` use the copy that the program uses: the
//! system's shared one. `cargo_c` is set where these two are built; a Rust program with this
//! feature may link the C client as it likes.

#[cfg(all(cargo_c, not(zklock_c_client = "dylib")))]
compile_error!(
    "the C library must use the shared libzookeeper_mt, not contain one: a program's zhandle_t \
     works only with the copy of the C client that made it.\n\
     Build without zookeeper-sys's features `static` and `source`, and where libzookeeper_mt.so is \
     (Debian: apt-get install libzookeeper-mt-dev; elsewhere: set ZOOKEEPER_DIR to its prefix)"
);
