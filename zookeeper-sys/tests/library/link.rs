//! The library is linked, and is the one that the bindings describe.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::ptr;

use zookeeper_sys::{
    String_vector, ZBADARGUMENTS, ZNONODE, ZOK, ZOO_CHECK_OP, ZOO_OPEN_ACL_UNSAFE, consts,
};

fn text_of(code: i32) -> &'static str {
    // SAFETY: zerror takes any code and returns a string that is never freed.
    let text = unsafe { zookeeper_sys::zerror(code) };
    assert!(!text.is_null());
    // SAFETY: as above: a C string that lives as long as the program.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("zerror speaks ASCII")
}

#[test]
fn errors_have_texts_even_when_nobody_knows_them() {
    assert_eq!(text_of(ZOK), "ok");
    assert_eq!(text_of(ZNONODE), "no node");
    assert!(text_of(-99_999).contains("unknown"), "{}", text_of(-99_999));
}

#[test]
fn no_handle_has_the_state_of_a_closed_one_and_cannot_be_closed() {
    // SAFETY: zoo_state accepts NULL.
    let state = unsafe { zookeeper_sys::zoo_state(ptr::null_mut()) };
    assert_eq!(state, 0);
    // SAFETY: zookeeper_close accepts NULL.
    let rc = unsafe { zookeeper_sys::zookeeper_close(ptr::null_mut()) };
    assert_eq!(rc, ZBADARGUMENTS);
}

#[test]
fn vectors_are_allocated_and_deallocated_by_the_library() {
    let mut names = String_vector { count: 0, data: ptr::null_mut() };
    // SAFETY: `names` is a valid vector that owns nothing yet.
    let rc = unsafe { zookeeper_sys::allocate_String_vector(&mut names, 3) };
    assert_eq!((rc, names.count), (0, 3));
    assert!(!names.data.is_null());
    for i in 0..3 {
        // SAFETY: the library allocated three elements.
        let element: *mut *mut c_char = unsafe { names.data.add(i) };
        // SAFETY: in bounds, as above.
        let string = unsafe { *element };
        assert!(string.is_null(), "elements start as NULL");
    }
    // SAFETY: what the library allocated above, freed once.
    let rc = unsafe { zookeeper_sys::deallocate_String_vector(&mut names) };
    assert_eq!((rc, names.data), (0, ptr::null_mut()));
}

#[test]
fn an_op_that_the_library_fills_reads_the_same_here() {
    let mut op = MaybeUninit::zeroed();
    let path = c"/a/b";
    // SAFETY: `op` is writable memory of its size, and `path` outlives it.
    unsafe { zookeeper_sys::zoo_check_op_init(op.as_mut_ptr(), path.as_ptr(), 7) };
    // SAFETY: zeroed and then filled: integers and pointers, for which every bit pattern will do.
    let op = unsafe { op.assume_init() };
    assert_eq!(op.type_, ZOO_CHECK_OP);
    // SAFETY: the type says that this is the union's active member.
    let check = unsafe { op.__bindgen_anon_1.check_op };
    assert_eq!((check.path, check.version), (path.as_ptr(), 7));
}

#[test]
fn the_open_acl_lets_the_world_do_everything() {
    // SAFETY: a global of the library that nobody in this program writes to.
    let open = unsafe { ZOO_OPEN_ACL_UNSAFE };
    assert_eq!(open.count, 1);
    // SAFETY: `count` says that there is one element, static like the vector.
    let entry = unsafe { *open.data };
    assert_eq!(entry.perms, consts::ZOO_PERM_ALL);
    // SAFETY: a C string in static data.
    let scheme = unsafe { CStr::from_ptr(entry.id.scheme) };
    assert_eq!(scheme, c"world");
}

#[test]
fn the_header_has_a_version() {
    let mut numbers = zookeeper_sys::HEADER_VERSION.split('.').map(str::parse::<u32>);
    assert_eq!(numbers.next(), Some(Ok(3)));
    assert!(matches!(numbers.next(), Some(Ok(5..))));
}
