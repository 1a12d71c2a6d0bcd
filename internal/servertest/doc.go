// Package servertest starts other projects' servers for tests: nginx, Apache, HAProxy,
// squid, Node, Python, MariaDB, from installed binaries and on loopback. A server ends with its
// test, also when the test's process is killed. It is for Linux.
package servertest
