package scenario_test

import _ "modernc.org/sqlite"

func crashDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(20000)&_txlock=immediate"
}
