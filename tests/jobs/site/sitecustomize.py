VALUE = "of the job"
