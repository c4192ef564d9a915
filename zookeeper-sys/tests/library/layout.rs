//! Sizes and offsets that C programs on 64-bit targets rely on.

use std::mem::{align_of, offset_of, size_of};

use zookeeper_sys::{
    ACL, ACL_vector, Id, Id_vector, Stat, String_vector, buffer, clientid_t, zoo_op_result_t,
    zoo_op_t,
};

#[test]
fn structs_have_the_sizes_of_the_c_client() {
    assert_eq!(size_of::<Stat>(), 72);
    assert_eq!(size_of::<ACL>(), 24);
    assert_eq!(size_of::<Id>(), 16);
    assert_eq!(size_of::<ACL_vector>(), 16);
    assert_eq!(size_of::<Id_vector>(), 16);
    assert_eq!(size_of::<String_vector>(), 16);
    assert_eq!(size_of::<buffer>(), 16);
    assert_eq!(size_of::<clientid_t>(), 24);
    assert_eq!(size_of::<zoo_op_t>(), 72);
    assert_eq!(size_of::<zoo_op_result_t>(), 32);
}

#[test]
fn structs_are_aligned_to_eight_bytes() {
    assert_eq!(align_of::<Stat>(), 8);
    assert_eq!(align_of::<ACL>(), 8);
    assert_eq!(align_of::<String_vector>(), 8);
    assert_eq!(align_of::<clientid_t>(), 8);
    assert_eq!(align_of::<zoo_op_t>(), 8);
    assert_eq!(align_of::<zoo_op_result_t>(), 8);
}

#[test]
fn fields_are_where_the_c_client_has_them() {
    assert_eq!(offset_of!(Stat, czxid), 0);
    assert_eq!(offset_of!(Stat, mzxid), 8);
    assert_eq!(offset_of!(Stat, ctime), 16);
    assert_eq!(offset_of!(Stat, mtime), 24);
    assert_eq!(offset_of!(Stat, version), 32);
    assert_eq!(offset_of!(Stat, cversion), 36);
    assert_eq!(offset_of!(Stat, aversion), 40);
    assert_eq!(offset_of!(Stat, ephemeralOwner), 48);
    assert_eq!(offset_of!(Stat, dataLength), 56);
    assert_eq!(offset_of!(Stat, numChildren), 60);
    assert_eq!(offset_of!(Stat, pzxid), 64);

    assert_eq!(offset_of!(ACL, perms), 0);
    assert_eq!(offset_of!(ACL, id), 8);
    assert_eq!(offset_of!(Id, scheme), 0);
    assert_eq!(offset_of!(Id, id), 8);
    assert_eq!(offset_of!(String_vector, count), 0);
    assert_eq!(offset_of!(String_vector, data), 8);
    assert_eq!(offset_of!(clientid_t, client_id), 0);
    assert_eq!(offset_of!(clientid_t, passwd), 8);

    assert_eq!(offset_of!(zoo_op_t, type_), 0);
    assert_eq!(offset_of!(zoo_op_result_t, err), 0);
    assert_eq!(offset_of!(zoo_op_result_t, value), 8);
    assert_eq!(offset_of!(zoo_op_result_t, valuelen), 16);
    assert_eq!(offset_of!(zoo_op_result_t, stat), 24);
}
