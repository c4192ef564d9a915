//! What a transaction is read as, whatever the C client has written into its memory.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// An operation of each kind, and as many as there may be.
fn ops(kinds: &[u8]) -> Vec<RawOp<'static>> {
    static ACL: std::sync::LazyLock<Vec<Acl>> = std::sync::LazyLock::new(Acl::open);
    let op = |kind: &u8| match kind % 4 {
        0 => RawOp::Create { path: "/a", data: b"data", acl: &ACL, mode: 2 },
        1 => RawOp::Delete { path: "/b", version: -1 },
        2 => RawOp::Set { path: "/c", data: b"", version: 7 },
        _ => RawOp::Check { path: "/d", version: 0 },
    };
    kinds.iter().map(op).collect()
}

proptest! {
    #[test]
    fn any_codes_and_any_path_within_its_room_are_read(
        kinds in vec(any::<u8>(), 0..8),
        codes in vec(prop_oneof![Just(0), -130..0, any::<c_int>()], 8),
        rc in prop_oneof![Just(0), -130..0, any::<c_int>()],
        written in vec(1..=255_u8, 0.."/a".len() + SEQUENCE_ROOM),
    ) {
        let ops = ops(&kinds);
        let mut memory = MultiMemory::new(&ops).unwrap();
        let (count, _, results) = memory.as_c().into_c();
        prop_assert_eq!(usize::try_from(count), Ok(ops.len()));
        // SAFETY: there is a result for each operation, and nobody else has the memory.
        let results = unsafe { std::slice::from_raw_parts_mut(results, ops.len()) };
        for (result, code) in results.iter_mut().zip(&codes) {
            result.err = *code;
        }
        for part in &mut memory.parts {
            for (place, byte) in part.created.iter_mut().zip(&written) {
                *place = c_char::from_ne_bytes([*byte]);
            }
        }
        let codes = &codes[..ops.len()];
        match memory.results(Code::from_raw(rc)) {
            Ok(read) => {
                let read_codes: Vec<c_int> = read.iter().map(|result| result.code.as_raw()).collect();
                prop_assert_eq!(read_codes, codes);
                for (result, op) in read.iter().zip(&ops) {
                    let is_create = matches!(op, RawOp::Create { .. });
                    prop_assert_eq!(result.path.is_some(), rc == 0 && is_create);
                    prop_assert_eq!(result.stat.is_some(), rc == 0 && matches!(op, RawOp::Set { .. }));
                    if let Some(path) = &result.path {
                        prop_assert_eq!(path, &String::from_utf8_lossy(&written));
                    }
                }
            }
            Err(code) => prop_assert!(code.as_raw() == rc && rc != 0),
        }
    }
}
