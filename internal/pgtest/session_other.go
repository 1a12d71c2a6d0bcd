//go:build !unix

package pgtest

import "syscall"

// session changes nothing here: there is no root on these systems.
func session(*account) *syscall.SysProcAttr { return nil }
