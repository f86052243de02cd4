// What Pythia asks of HBase's Thrift 2 gateway (since HBase 2.4): that part of its interface, with HBase's own names and
// numbers. getThriftServerType and getClusterId are calls of the Thrift 1 gateway as well.

enum TThriftServerType {
  ONE = 1,
  TWO = 2
}

struct TTableName {
  1: optional binary ns,
  2: required binary qualifier
}

struct TColumnFamilyDescriptor {
  1: required binary name,
  10: optional i32 maxVersions,
  13: optional i32 timeToLive
}

struct TTableDescriptor {
  1: required TTableName tableName,
  2: optional list<TColumnFamilyDescriptor> columns
}

exception TIOError {
  1: optional binary message,
  2: optional bool canRetry
}

service Thrift2 {
  TThriftServerType getThriftServerType(),
  string getClusterId(),
  void createTable(1: required TTableDescriptor desc, 2: optional list<binary> splitKeys) throws (1: TIOError io)
}
