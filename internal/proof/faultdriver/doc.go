// Package faultdriver stands between a process and its database, so that tests can act
// there like a crash, a network or a disk. It wraps a driver of database/sql ([Wrap]) and
// passes every call of it through a function. It wraps a connection ([Conn]) and passes
// every read and write through a function. The code under test stays as it is.
package faultdriver
