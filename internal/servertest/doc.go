// Package servertest starts servers that others wrote, for tests of how we get on with
// them: nginx, Apache, HAProxy, squid, Node, Python, from installed binaries and on
// loopback. A server ends with its test, also when the test's process is killed. It is
// for Linux.
package servertest
