// A static program whose calls no library sees: writes 64 blocks of 1,000 bytes, reads them back, prints both sums.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	block := make([]byte, 1000)
	file, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		panic(err)
	}
	descriptor, written, read := int(file.Fd()), 0, 0
	for index := 0; index < 64; index++ {
		count, _ := syscall.Pwrite(descriptor, block, int64(index*len(block)))
		written += count
	}
	for index := 63; index >= 0; index-- {
		count, _ := syscall.Pread(descriptor, block, int64(index*len(block)))
		read += count
	}
	fmt.Println(written, read)
}
