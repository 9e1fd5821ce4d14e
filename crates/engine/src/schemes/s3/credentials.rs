//! Where credentials come from: the environment, or AWS's file of profiles. Never a URL.

use std::path::PathBuf;

use super::store::{Outcome, Problem};

/// Who asks. Has no `Debug`, so that it cannot be printed by mistake.
pub struct Credentials {
    pub key: String,
    pub secret: String,
    pub token: Option<String>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Credentials {
    /// Those of `profile` where one is named; else of the environment, else of the file's default profile.
    pub fn find(profile: &str) -> Outcome<Self> {
        if profile.is_empty()
            && let (Some(key), Some(secret)) = (
                variable("AWS_ACCESS_KEY_ID"),
                variable("AWS_SECRET_ACCESS_KEY"),
            )
        {
            let token = variable("AWS_SESSION_TOKEN");
            return Ok(Self { key, secret, token });
        }
        let named = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let wanted = if profile.is_empty() {
            named.as_str()
        } else {
            profile
        };
        let path = variable("AWS_SHARED_CREDENTIALS_FILE")
            .map(PathBuf::from)
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".aws/credentials")));
        let text = path
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        Self::of_profile(&text, wanted).ok_or_else(|| {
            let file = path.map_or_else(|| "no file".to_owned(), |path| path.display().to_string());
            let words = format!(
                "no credentials: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set, nor has {file} a \
                 profile {wanted} with both"
            );
            Problem::new(libc::EACCES, words)
        })
    }

    /// One profile of a file of `[name]` and `key = value`.
    fn of_profile(text: &str, wanted: &str) -> Option<Self> {
        let (mut here, mut key, mut secret, mut token) = (false, None, None, None);
        for line in text.lines().map(str::trim) {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                here = name.trim() == wanted;
            } else if let (true, Some((name, value))) = (here, line.split_once('=')) {
                let value = Some(value.trim().to_owned());
                match name.trim() {
                    "aws_access_key_id" => key = value,
                    "aws_secret_access_key" => secret = value,
                    "aws_session_token" => token = value,
                    _ => {}
                }
            }
        }
        Some(Self {
            key: key?,
            secret: secret?,
            token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[default]\naws_access_key_id = A\naws_secret_access_key = B=C\n\n[half]\n\
                        aws_access_key_id=D\n[whole]\naws_access_key_id=E\naws_secret_access_key=F\naws_session_token=G";

    #[test]
    fn a_profile_is_read_from_its_section_alone() {
        let found = Credentials::of_profile(FILE, "whole").unwrap();
        assert_eq!((found.key.as_str(), found.secret.as_str()), ("E", "F"));
        assert_eq!(found.token.as_deref(), Some("G"));
        assert_eq!(
            Credentials::of_profile(FILE, "default").unwrap().secret,
            "B=C"
        );
    }

    #[test]
    fn a_profile_without_both_is_none() {
        assert!(Credentials::of_profile(FILE, "half").is_none());
        assert!(Credentials::of_profile(FILE, "other").is_none());
    }
}
