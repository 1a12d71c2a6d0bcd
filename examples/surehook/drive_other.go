//go:build !linux

package main

// networkDrive is not known here.
func networkDrive(string) string { return "" }
