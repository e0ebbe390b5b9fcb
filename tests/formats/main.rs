//! What is written down and sent: logs, traces, datagrams. No game is played here.

#[path = "../hostile/container.rs"]
mod container;
mod drawn;
mod keyframes;
mod log_compat;
mod log_corruption;
mod log_roundtrip;
mod log_sessions;
mod log_speed;
mod wire;
