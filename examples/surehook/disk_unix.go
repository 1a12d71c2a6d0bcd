//go:build linux || darwin || freebsd

package main

import "syscall"

// diskSpace is how many bytes are free for us where a folder is, and how many there are.
func diskSpace(dir string) (free, size uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize), nil //nolint:unconvert // the types differ from system to system
}
