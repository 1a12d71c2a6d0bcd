//go:build unix

package pgtest

import "syscall"

// session has a command run in a session of its own, as a user, or as ourselves if it
// is nil.
func session(as *account) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if as != nil {
		attributes.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	return attributes
}
