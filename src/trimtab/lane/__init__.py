"""What runs inside one Spark task: rows in, state and logic, rows out.

`pack` is the way from a source to the lanes, `task` the work of a lane; both are free of Spark.
"""
