// A subject in Go: static, with system calls of its own and no C library, from several goroutines.
package main

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

func sure(err error) {
	if err != nil {
		panic(err)
	}
}

func work(name string, turns int) {
	file, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_TRUNC, 0o644)
	sure(err)
	own := make([]byte, 1024)
	for turn := 0; turn < turns; turn++ {
		_, err = syscall.Write(file, own)
		sure(err)
	}
	for turn := 0; turn < turns; turn++ {
		_, err = syscall.Pread(file, own, int64(1024*turn))
		sure(err)
	}
	sure(syscall.Close(file))
}

func main() {
	var all sync.WaitGroup
	for number := 0; number < 4; number++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work(fmt.Sprintf("g%d", number), 25)
		}()
	}
	all.Wait()
	sure(syscall.Rename("g0", "h0"))
	sure(syscall.Unlink("g1"))
	sure(syscall.Mkdir("sub", 0o755))
	sure(syscall.Rmdir("sub"))
	sure(syscall.Truncate("g2", 100))
	calls := `"open": 4, "write": 100, "pread": 100, "close": 4, "renameat": 1, "unlinkat": 2, "mkdirat": 1, "truncate": 1`
	fmt.Fprintf(os.Stdout, "{\"bytes_read\": 102400, \"bytes_written\": 102400, \"calls\": {%s}}\n", calls)
}
