"""Do label heads mean labels? Trained runs of both layers under the same controls -> one table, its tests, a figure."""
