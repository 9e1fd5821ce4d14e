//! SMB through libsmbclient.

mod calls;
mod client;
mod home;
mod threads;

pub use calls::Libsmbclient;
pub use client::{Client, Listing, Login, Manner, Opened};
