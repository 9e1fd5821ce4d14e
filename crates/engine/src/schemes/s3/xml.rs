//! The few elements that S3's answers are asked for. Their keys are ours, so that no entity but the five of XML
//! occurs in them.

/// The text of the first element `name`.
pub fn first(text: &str, name: &str) -> Option<String> {
    elements(text, name).next().map(unescaped)
}

/// The inside of every element `name`, which does not hold another of its name.
pub fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.find(&begin)? + begin.len();
        let length = rest[from..].find(&end)?;
        let inside = &rest[from..from + length];
        rest = &rest[from + length + end.len()..];
        Some(inside)
    })
}

fn unescaped(text: &str) -> String {
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#34;", "\""),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Text as the inside of an element.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_in_their_order_and_unescaped() {
        let text =
            "<L><Contents><Key>a&amp;b</Key></Contents><Contents><Key>c</Key></Contents></L>";
        let keys: Vec<_> = elements(text, "Contents")
            .filter_map(|part| first(part, "Key"))
            .collect();
        assert_eq!(keys, ["a&b", "c"]);
    }

    #[test]
    fn what_is_no_xml_has_no_elements() {
        assert_eq!(first("<Key>open", "Key"), None);
        assert_eq!(first("nonsense", "Key"), None);
    }
}
