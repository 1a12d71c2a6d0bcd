//go:build !linux && !darwin && !freebsd

package main

import "errors"

// diskSpace is not known here.
func diskSpace(string) (free, size uint64, err error) {
	return 0, 0, errors.New("how much of the disk is free cannot be read on this system")
}
