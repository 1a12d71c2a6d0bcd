// Package failover tries what happens to a sending service when its database is moved,
// brought back to an earlier state, or taken over by a standby. It has tests alone.
package failover
