"""The truth and its safety: the log, the archive, the journal. One writer; everything else can be rebuilt."""
