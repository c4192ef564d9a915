//! Servers, ensembles and the proxy.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod database;
mod ensemble;
mod partition;
mod proxy;
mod proxy_sessions;
mod server;
mod several_servers;
