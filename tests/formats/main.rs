//! Files and datagrams: logs, traces, the wire format. No game runs here.

#[path = "../hostile/container.rs"]
mod container;
mod file_index;
mod keyframes;
mod log_compat;
mod log_corruption;
mod log_roundtrip;
mod log_sessions;
mod log_speed;
mod views;
mod wire;
