//! A password that somebody wrote into a URL: it is found to be refused, and never to be repeated.

const OPTIONS: [&str; 8] = [
    "key",
    "pass",
    "passwd",
    "password",
    "pwd",
    "secret",
    "secret_key",
    "token",
];
const HIDDEN: &str = "…";

/// `text` with the passwords of the URLs in it left out; the same text where there is none.
///
/// A password may hold any of `/ ? # @ : %`, so it ends at the last `@`. What looks like a port is one only where no `@`
/// follows but in the options: a path has its `@` as `%40`.
pub fn without_password(text: &str) -> String {
    let folded = text.to_ascii_lowercase();
    let ends = ["://", "%3a%2f%2f"].map(|mark| {
        folded
            .match_indices(mark)
            .map(|found| found.0 + found.1.len())
    });
    let [plain, encoded] = ends;
    let mut starts: Vec<_> = plain.chain(encoded).collect();
    starts.sort_unstable();
    for (place, start) in starts.into_iter().enumerate() {
        let next_option = if place == 0 { '?' } else { '&' };
        if let Some((from, to)) = password_in(&folded[start..], next_option) {
            let (head, tail) = (&text[..start + from], &text[start + to..]);
            return without_options(&format!("{head}{HIDDEN}{tail}"));
        }
    }
    without_options(text)
}

/// Where the password lies in what follows `SCHEME://`, whose own options, or those beside it, begin at a mark.
fn password_in(rest: &str, next_option: char) -> Option<(usize, usize)> {
    let begun = rest.len() - rest.trim_start_matches('/').len();
    let length = rest[begun..].find(['/', '?', '#']);
    let authority = &rest[..length.map_or(rest.len(), |length| begun + length)];
    let from = colon_in(authority)?;
    let last = rest[from..].rfind('@')? + from;
    let first = rest[from..].find('@')? + from;
    let after = authority[from..]
        .split(next_option)
        .next()
        .unwrap_or_default();
    let is_port = !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit());
    let in_options = rest
        .find(next_option)
        .is_some_and(|options| options < first);
    (!(is_port && in_options)).then_some((from, last))
}

/// What follows the first colon of an authority begins there; colons of an address in brackets do not count.
fn colon_in(authority: &str) -> Option<usize> {
    let bracket = authority.find('[').filter(|at| {
        let user = authority[..*at].trim_start_matches('/');
        user.is_empty() || user.ends_with('@') && !user.contains(':') && !user.contains("%3a")
    });
    let skipped = bracket.and_then(|_| authority.find(']')).unwrap_or(0);
    let found = |mark: &str| {
        let at = authority[skipped..].find(mark)? + skipped;
        Some((at, at + mark.len()))
    };
    let (_, end) = [found(":"), found("%3a")].into_iter().flatten().min()?;
    Some(end)
}

/// Options that are named like a secret have no value.
fn without_options(text: &str) -> String {
    let Some((place, options)) = text.split_once('?').filter(|_| text.contains("://")) else {
        return text.to_owned();
    };
    let kept: Vec<_> = options
        .split('&')
        .map(|part| match part.split_once('=') {
            Some((name, value))
                if !value.is_empty() && OPTIONS.contains(&&*name.to_ascii_lowercase()) =>
            {
                format!("{name}={HIDDEN}")
            }
            _ => part.to_owned(),
        })
        .collect();
    format!("{place}?{}", kept.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_password_stays() {
        for url in [
            "smb://ann@host:445/share/a%40b",
            "s3://b?endpoint=http://host:7480&profile=me@corp",
            "nfs://[fe80::1]:2049/export",
            "nfs://ann@[fe80::1]/export",
            "cephfs:///a@b:c",
            "root://host//a:b@c",
            "rados://pool?user=me&conf=/etc/a:b",
            "/srv/a:b@c?password=x",
            "host:port",
        ] {
            assert_eq!(without_password(url), url);
        }
    }

    proptest! {
        #[test]
        fn a_password_is_hidden_whatever_is_in_it(
            password in "[qxzQXZ0-9/@:?#%&=+;,.\\[\\] ~!$'()*-]{0,12}", user in "[a-p]{0,4}", scheme in "smb|root|s3|http",
        ) {
            let secret = format!("q{password}Z");
            for url in [
                format!("{scheme}://{user}:{secret}@host/share"),
                format!("a={scheme}://{user}:{secret}@host:445/share?timeout=5"),
                format!("{scheme}://{user}%3A{secret}@host/share"),
                format!("s3://bucket?endpoint=http://{user}:{secret}@host"),
                format!("s3://bucket?endpoint=http%3A%2F%2F{user}:{secret}@host&region=x"),
            ] {
                let shown = without_password(&url);
                prop_assert!(shown != url);
                prop_assert!(!shown.contains(&secret), "{} of {}", shown, url);
            }
        }

        #[test]
        fn arbitrary_text_is_no_panic(text in ".{0,60}") {
            without_password(&text);
            without_password(&format!("smb://{text}"));
            without_password(&format!("s3://b?endpoint=http%3A%2F%2F{text}"));
        }
    }
}
