//go:build !unix

package pgtest

import "syscall"

// session changes nothing here: there is no root to run as instead of somebody else.
func session(*account) *syscall.SysProcAttr { return nil }
