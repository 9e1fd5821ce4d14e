"""The lab's gateways: NFS, SMB, XRootD and S3, a file each."""
