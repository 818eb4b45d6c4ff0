"""`trimtab bench skew`: streams whose rows crowd on some lanes, with balancing off and on, and as plain Spark does it.

AutoFlow's query, `total[auction] += price`, on rows that come at a rate of their own whether or not they are taken
(AutoFlow, IV). What a row costs is either waited for or worked for, and every result says which.
"""
