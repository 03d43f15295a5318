//go:build unix

package sweepcmd

import (
	"os"
	"syscall"
)

// lock takes a file for this process as long as it is open; ok is false if another one has it.
func lock(f *os.File) (ok bool) {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
