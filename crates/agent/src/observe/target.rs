//! A target as the observers are told of it: what of its facts says where its data lie.

use leadline_engine::schemes::{self, Storage};
use serde_json::Value;

/// Files of this host's own file systems.
const OWN: &str = "local";

/// What is known of one.
#[derive(Debug, Clone)]
pub struct Target {
    pub storage: Storage,
    pub file_system: String,
    pub in_memory: bool,
    pub device: Option<String>,
    /// Servers that the mount itself names.
    pub addresses: Vec<String>,
    pub server_here: bool,
}

impl Target {
    /// From its facts; one that says nothing leads to some server.
    pub fn read(facts: &Value) -> Self {
        let text = |key: &str| facts.get(key).and_then(Value::as_str).map(str::to_owned);
        let flag = |value: Option<&Value>| value.and_then(Value::as_bool).unwrap_or(false);
        let server = facts.get("server").filter(|server| server.is_object());
        Self {
            storage: storage_of(facts),
            file_system: text("file_system").unwrap_or_default(),
            in_memory: flag(facts.get("in_memory")),
            device: text("device"),
            addresses: addresses_of(facts),
            server_here: flag(server.and_then(|server| server.get("here"))),
        }
    }

    pub fn is_local(&self) -> bool {
        self.storage == Storage::Mount
    }

    pub fn is_remote(&self) -> bool {
        matches!(self.storage, Storage::Server | Storage::Cluster)
    }

    /// Why it has no block device of its own here.
    pub fn why_no_device(&self) -> String {
        match (&self.device, self.storage) {
            _ if self.in_memory => "the files lie in memory".to_owned(),
            (Some(device), _) => format!("/proc/diskstats has no {device}"),
            (None, Storage::None) => "no storage is used".to_owned(),
            (None, Storage::Mount) => {
                format!(
                    "{} has no single block device on this host",
                    self.file_system
                )
            }
            (None, Storage::Cluster) => "the data lie on a cluster: see the OSDs' bytes".to_owned(),
            (None, Storage::Server) => "the device belongs to the server".to_owned(),
        }
    }
}

fn storage_of(facts: &Value) -> Storage {
    let access = facts
        .get("access")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if access == OWN {
        return Storage::Mount;
    }
    let by_engine = schemes::storage_of(access).filter(|storage| *storage != Storage::Mount);
    by_engine.unwrap_or_else(|| match facts.get("ceph") {
        Some(ceph) if ceph.is_object() => Storage::Cluster,
        _ => Storage::Server,
    })
}

/// `addr=` of NFS and SMB; of a mounted cluster the addresses of its monitors, in options or source.
fn addresses_of(facts: &Value) -> Vec<String> {
    let options = facts
        .get("options")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let option = |name: &str| {
        let texts = options.iter().filter_map(Value::as_str);
        let found = texts
            .filter_map(|text| text.split_once('='))
            .find(|(key, _)| *key == name);
        found
            .map(|(_, value)| value.to_owned())
            .filter(|value| !value.is_empty())
    };
    if let Some(address) = option("addr") {
        return vec![address];
    }
    if facts.get("ceph").is_none_or(|ceph| !ceph.is_object()) {
        return Vec::new();
    }
    let source = facts
        .get("source")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let monitors = option("mon_addr").map_or(source, |found| found.replace('/', ","));
    monitors.split(',').filter_map(address_in).collect()
}

/// The address at the head of `10.0.0.1:6789:/` or `[fd00::1]:6789`.
fn address_in(text: &str) -> Option<String> {
    let head = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => text.split(':').next()?,
    };
    head.parse::<std::net::IpAddr>()
        .ok()
        .map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn where_the_data_lie_follows_from_access_and_cluster() {
        let of = |facts: Value| Target::read(&facts).storage;
        assert_eq!(of(json!({"access": "local"})), Storage::Mount);
        assert_eq!(of(json!({"access": "null"})), Storage::None);
        assert_eq!(of(json!({"access": "rados"})), Storage::Cluster);
        assert_eq!(
            of(json!({"access": "some-mount", "ceph": {}})),
            Storage::Cluster
        );
        assert_eq!(
            of(json!({"access": "some-mount", "ceph": null})),
            Storage::Server
        );
        assert_eq!(of(json!(7)), Storage::Server);
    }

    #[test]
    fn servers_are_those_that_the_mount_names() {
        let of = |facts: Value| Target::read(&facts).addresses;
        let nfs = json!({"options": ["rw", "addr=10.0.0.5"], "source": "server:/export"});
        assert_eq!(of(nfs), ["10.0.0.5"]);
        let ceph = json!({"ceph": {}, "source": "10.0.0.1:6789,[fd00::1]:6789:/", "options": []});
        assert_eq!(of(ceph), ["10.0.0.1", "fd00::1"]);
        let named = json!({"ceph": {}, "source": "u@f.a=/", "options": ["mon_addr=10.0.0.2:3300/10.0.0.3:3300"]});
        assert_eq!(of(named), ["10.0.0.2", "10.0.0.3"]);
        assert!(of(json!({"source": "10.0.0.1:/", "options": []})).is_empty());
    }
}
