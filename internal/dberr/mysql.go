package dberr

import (
	"fmt"
	"strings"
)

// MySQL returns the number of an error of a MySQL or MariaDB server, or 0. It looks through
// all errors that err wraps.
//
// A driver has the number in a field, which no interface can name. But its error's text
// begins with it: "Error 1213 (40001): …" in github.com/go-sql-driver/mysql, and the same in
// capitals in github.com/go-mysql-org/go-mysql. The type's name tells the driver's errors
// from others.
func MySQL(err error) (number int) {
	return first(err, func(err error) (number int) {
		if !strings.Contains(strings.ToLower(fmt.Sprintf("%T", err)), "mysql") {
			return 0
		}
		if _, err := fmt.Sscanf(strings.ToLower(err.Error()), "error %d", &number); err != nil {
			return 0
		}
		return number
	})
}

func ofMySQL(number int) Kind {
	switch number {
	case 1213, // ER_LOCK_DEADLOCK; a cluster's conflict, too
		1205, // ER_LOCK_WAIT_TIMEOUT
		1020, // ER_CHECKREAD: MariaDB's innodb_snapshot_isolation
		3101, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a conflict in MySQL's group replication
		3572: // ER_LOCK_NOWAIT
		return Retry
	case 1021, // ER_DISK_FULL
		1040, // ER_CON_COUNT_ERROR
		1047, // ER_UNKNOWN_COM_ERROR: a node of a Galera cluster that is not ready
		1053, // ER_SERVER_SHUTDOWN
		1114, // ER_RECORD_FILE_FULL
		1203, // ER_TOO_MANY_USER_CONNECTIONS
		1290, // ER_OPTION_PREVENTS_STATEMENT: read_only: it is a replica, or became one
		1792, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
		1836, // ER_READ_ONLY_MODE
		1927, // ER_CONNECTION_KILLED
		4031: // ER_CLIENT_INTERACTION_TIMEOUT
		return Unavailable
	}
	// Left out, since they do not say who ended the statement and why: 1317
	// (ER_QUERY_INTERRUPTED), 1969 and 3024 (time limits of statements).
	return Other
}

// lostMySQL recognises the error of github.com/go-sql-driver/mysql for a connection that
// has ended, which has no type and no number.
func lostMySQL(err error) bool { return err.Error() == "invalid connection" }
