// Package faultdriver stands between a process and its database, so that tests can act there
// like a crash, a network or a disk. It wraps a driver of database/sql ([Wrap]), whose
// every call goes through a function, and a connection ([Conn]), whose every read and
// write does. The code under test stays as it is.
package faultdriver
