//! The password of a session, which a program does not tell, from its id: the server makes it with
//! Java's `Random`, seeded with the id.

const SEED_OF_THE_SERVER: u64 = 0xB341_5C00;
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

pub fn password_of(session_id: i64) -> [u8; 16] {
    let mut state = (session_id as u64 ^ SEED_OF_THE_SERVER ^ MULTIPLIER) & MASK;
    let mut password = [0; 16];
    for four in password.chunks_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        four.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}

#[test]
fn the_password_is_the_one_that_the_server_gave() {
    let server = zklock_testing::Server::start().unwrap();
    let timeout = std::time::Duration::from_secs(10);
    let client = zklock_testing::wire::RawClient::connect(server.addr(), timeout).unwrap();
    assert_eq!(password_of(client.session_id()), client.password());
}
