//! Locks over TLS and SASL, at real servers. The C client has to be built with both: `scripts/secure`.

mod sasl;
mod tls;
