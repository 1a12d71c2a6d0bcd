package pgtest

import "syscall"

// room is how many bytes a user without privileges can write into a folder: statfs(2).
func room(folder string) uint64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil || s.Bsize <= 0 {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
