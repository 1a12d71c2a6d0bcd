// Package edge wraps what stands between a process and its database, so that tests
// can do there what a crash, a network or a disk does: a driver of database/sql
// ([Wrap]), of which every call goes through a function, and a connection ([Conn]), of
// which every read and write does. The code that is tested stays as it is.
package edge
