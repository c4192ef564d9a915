//! Results of transactions, whatever the server made of them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::create("/create", "", CreateMode::Persistent)),
        Just(Op::set("/set", "")),
        Just(Op::delete("/delete")),
        Just(Op::check("/check")),
    ]
}

fn result() -> impl Strategy<Value = RawOpResult> {
    let code = prop_oneof![2 => Just(0), 1 => Just(-2), 1 => -130..0, 1 => any::<i32>()];
    (code, prop::option::of(".{0,8}"), any::<bool>()).prop_map(|(code, path, has_stat)| {
        RawOpResult { code: Code::from_raw(code), path, stat: has_stat.then(Stat::default) }
    })
}

proptest! {
    #[test]
    fn results_are_one_for_each_operation_or_the_error_of_one(
        (ops, results) in vec((op(), result()), 1..8).prop_map(|all| all.into_iter().unzip())
    ) {
        let (ops, results): (Vec<Op>, Vec<RawOpResult>) = (ops, results);
        let codes: Vec<Code> = results.iter().map(|result| result.code).collect();
        match explain(&ops, results) {
            Ok(read) => {
                prop_assert_eq!(read.len(), ops.len());
                prop_assert!(codes.iter().all(|code| *code == Code::OK));
            }
            Err(error) => {
                // Its path is that of an operation which ended so.
                let said = |(op, code): (&Op, &Code)| {
                    op.path() == error.path() && *code == error.code() && *code != Code::OK
                };
                prop_assert!(ops.iter().zip(&codes).any(said), "{error}");
            }
        }
    }
}
