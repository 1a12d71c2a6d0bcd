// Package failover tests a sending service whose database is moved, brought back to an
// earlier state, or taken over by a standby. It has only tests.
package failover
