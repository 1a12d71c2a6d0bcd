//go:build unix

package pgtest

import "syscall"

// session makes a command run in a session of its own, as a user; nil: as the present
// one.
func session(as *account) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		attributes.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	return attributes
}
