"""What a proof of settings needs beside its verb."""
